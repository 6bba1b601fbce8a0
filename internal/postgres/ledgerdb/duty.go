package ledgerdb

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

// deskDuty begins the names of the duties by which desks say that they are there: to hold one is to have done it.
const deskDuty = "desk:"

const dutySQL = `INSERT INTO dead_letter_duties AS d (duty, holder, until, done_at)
	VALUES ($1::text, $2::text, clock_timestamp() + $4::interval, CASE WHEN $5::boolean THEN clock_timestamp() END)
	ON CONFLICT (duty) DO UPDATE SET holder = EXCLUDED.holder, until = EXCLUDED.until, done_at = coalesce(EXCLUDED.done_at, d.done_at)
	WHERE (d.holder = EXCLUDED.holder OR d.until <= clock_timestamp()) AND (d.done_at IS NULL OR d.done_at <= clock_timestamp() - $3::interval)`

// Duty implements [ledger.Upkeep].
func (l *Ledger) Duty(ctx context.Context, name, holder string, every, lease time.Duration) (bool, error) {
	if holder == "" {
		return false, ledger.ErrNobody
	}
	mine := false
	err := l.within(ctx, "take a duty", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, dutySQL, name, holder, every, lease, strings.HasPrefix(name, deskDuty))
		mine = tag.RowsAffected() == 1
		return err
	})
	return mine && err == nil, err
}

// DutyDone implements [ledger.Upkeep]. ErrLost: somebody else has the duty by now.
func (l *Ledger) DutyDone(ctx context.Context, name, holder string) error {
	return l.within(ctx, "note that a duty is done", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE dead_letter_duties SET done_at = clock_timestamp(), until = clock_timestamp()
			WHERE duty = $1::text AND holder = $2::text`, name, holder)
		if err == nil && tag.RowsAffected() == 0 {
			return ledger.ErrLost
		}
		return err
	})
}

// Desks implements [ledger.Upkeep].
func (l *Ledger) Desks(ctx context.Context, within time.Duration) (desks []string, err error) {
	err = l.within(ctx, "list desks", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		desks, err = textsOf(tx.Query(ctx, `SELECT substr(duty, length($2::text) + 1) FROM dead_letter_duties
			WHERE starts_with(duty, $2::text) AND done_at >= clock_timestamp() - $1::interval ORDER BY 1`, within, deskDuty))
		return err
	})
	return desks, err
}

// Remembered implements [ledger.Upkeep]. A name that was never remembered has an empty text, at the zero time.
func (l *Ledger) Remembered(ctx context.Context, name string) (text string, at time.Time, err error) {
	err = l.within(ctx, "read a note", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT text, at FROM dead_letter_notes WHERE name = $1::text`, name).Scan(&text, &at)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return text, at, err
}

// Remember implements [ledger.Upkeep].
func (l *Ledger) Remember(ctx context.Context, name, text string) error {
	return l.within(ctx, "write a note", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO dead_letter_notes (name, text) VALUES ($1::text, $2::text)
			ON CONFLICT (name) DO UPDATE SET text = EXCLUDED.text, at = clock_timestamp()`, name, db.Text(text))
		return err
	})
}
