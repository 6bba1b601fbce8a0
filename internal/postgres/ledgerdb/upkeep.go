package ledgerdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

var _ ledger.Upkeep = (*Ledger)(nil)

// The most that one call ends: so many leases in a transaction, so many transactions. The rest is for the next call, as the
// caller has other work to do meanwhile.
const (
	endedAtOnce  = 1000
	endedByACall = 5
)

const (
	lapsedSQL = `SELECT d.dead_letter_id FROM dead_letters d
		WHERE d.state = 'PROCESSING' AND (d.lease_until < now() OR d.lease_until IS NULL)
			AND NOT EXISTS (SELECT FROM dead_letter_outbox o WHERE o.dead_letter_id = d.dead_letter_id
				AND o.published_at IS NULL AND o.ended_at IS NULL AND o.claimed_until > now())
		ORDER BY d.dead_letter_id LIMIT $1::int FOR UPDATE SKIP LOCKED`
	// A row that was claimed since is being published.
	idleSQL = `WITH unsent AS (
			SELECT dead_letter_id, claimed_until FROM dead_letter_outbox
			WHERE dead_letter_id = ANY($1::text[]) AND published_at IS NULL AND ended_at IS NULL ORDER BY outbox_id FOR UPDATE)
		SELECT id FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT FROM unsent u WHERE u.dead_letter_id = id AND u.claimed_until > clock_timestamp())`
	leaseEndedSQL = `UPDATE dead_letters SET state = 'PENDING', changed_at = clock_timestamp(), changed_by = $2::text, changed_act = 'lease_ended', why = $3::text,
			owner = NULL, lease_until = NULL
		WHERE dead_letter_id = ANY($1::text[])`
)

// EndLeases implements [ledger.Upkeep]. A row that is being published just now is left until its claim lapses.
func (l *Ledger) EndLeases(ctx context.Context, by ledger.Actor) (int, error) {
	if by.Name == "" {
		return 0, ledger.ErrNobody
	}
	why := by.Why
	if why == "" {
		why = ledger.Unheard
	}
	ended := 0
	for range endedByACall {
		var lapsed, idle []string
		err := l.within(ctx, "end leases", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
			var err error
			if lapsed, err = textsOf(tx.Query(ctx, lapsedSQL, endedAtOnce)); err != nil || len(lapsed) == 0 {
				return err
			}
			if idle, err = textsOf(tx.Query(ctx, idleSQL, lapsed)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, withdrawSQL, idle); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, leaseEndedSQL, idle, db.Text(by.Name), db.Text(why))
			return err
		})
		if err != nil {
			return ended, err
		}
		if ended += len(idle); len(lapsed) < endedAtOnce {
			break
		}
	}
	return ended, nil
}

func textsOf(rows pgx.Rows, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

const (
	// OnlyCopySQL is what the ledger keeps until an archive has it; the index dead_letters_unarchived has the same words. The rest of what is
	// RESOLVED is what dead_letters_remove takes.
	OnlyCopySQL          = `d.state = 'RESOLVED' AND d.archived_in IS NULL AND d.changed_act <> 'stored' AND octet_length(d.value) > 0`
	lettersUnarchivedSQL = `SELECT count(*) FROM dead_letters d WHERE ` + OnlyCopySQL + ` AND d.changed_at < $1`
)

// Unarchived implements [ledger.Upkeep].
func (l *Ledger) Unarchived(ctx context.Context, resolvedBefore time.Time) (n int64, err error) {
	err = l.within(ctx, "count dead letters that no archive has", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, lettersUnarchivedSQL, resolvedBefore).Scan(&n)
	})
	return n, err
}

// Remove implements [ledger.Upkeep]. The database does it by a function of its own, and keeps what is RESOLVED for 7 days at the least.
func (l *Ledger) Remove(ctx context.Context, resolvedBefore time.Time, n int, by ledger.Actor) (removed int, err error) {
	if by.Name == "" {
		return 0, ledger.ErrNobody
	}
	err = l.within(ctx, "remove resolved dead letters", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT dead_letters_remove($1::timestamptz, $2::int, $3::text, $4::text)`,
			resolvedBefore, n, db.Text(by.Name), db.Text(by.Why)).Scan(&removed)
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// Compact implements [ledger.Upkeep].
func (l *Ledger) Compact(ctx context.Context) error {
	return l.within(ctx, "sum up the counts of dead letters", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT dead_letters_compact()`)
		return err
	})
}
