package historydb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
)

// The states follow stored decisions. A day that is dropped before they came so far is in no state, and nothing would tell. So a day
// stays in the table until they have followed all of it.
const (
	statesReadableSQL = `SELECT coalesce(has_table_privilege(to_regclass('decision_states_mark')::oid, 'SELECT'), false)`
	statesMarkNowSQL  = `SELECT stored_before, clock_timestamp() FROM decision_states_mark`
	unfollowedSQL     = `SELECT EXISTS (SELECT FROM %table% d WHERE d.stored_at >= $1::timestamptz)`
)

const (
	// followedPatience is how long states are waited for that are near the clock. They rest up to 30 s.
	followedPatience = 90 * time.Second
	// followedNear is how far these may be behind.
	followedNear = 10 * time.Minute
)

// asker is a connection or a transaction.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// statesBehind returns how far the states have come, if some row of a table was stored since. It returns nil where there are none:
// no desk keeps states, or this role may not read them.
func statesBehind(ctx context.Context, by asker, from string) (mark *time.Time, lag time.Duration, err error) {
	var readable bool
	if err := by.QueryRow(ctx, statesReadableSQL).Scan(&readable); err != nil || !readable {
		return nil, 0, err
	}
	var at pgtype.Timestamptz
	var now time.Time
	if err := by.QueryRow(ctx, statesMarkNowSQL).Scan(&at, &now); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		return nil, 0, err
	}
	if at.InfinityModifier != pgtype.Finite {
		return nil, 0, nil
	}
	var behind bool
	if err := by.QueryRow(ctx, strings.ReplaceAll(unfollowedSQL, "%table%", from), at.Time).Scan(&behind); err != nil || !behind {
		return nil, 0, err
	}
	return &at.Time, now.Sub(at.Time), nil
}

// followedBefore waits until the states have followed the day. It gives up if they are far behind.
func (d *archiveDay) followedBefore(ctx context.Context) error {
	for began := time.Now(); ; {
		var mark *time.Time
		var lag time.Duration
		err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) (err error) {
			if _, err = tx.Exec(ctx, countLimitsSQL, "0"); err == nil {
				mark, lag, err = statesBehind(ctx, tx, d.table)
			}
			return err
		})
		if mark == nil || err != nil {
			return err
		}
		if d.of.hurry || lag > followedNear || time.Since(began) > followedPatience {
			return d.unfollowed(*mark)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(countPause):
		}
	}
}

// followed refuses a day that was taken out in tx, and has rows that were stored since the states last came along.
func (d *archiveDay) followed(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, countLimitsSQL, string(db.Milliseconds(d.of.within))); err != nil {
		return err
	}
	mark, _, err := statesBehind(ctx, tx, pgx.Identifier{d.leaving()}.Sanitize())
	if err == nil && mark != nil {
		err = d.unfollowed(*mark)
	}
	return err
}

func (d *archiveDay) unfollowed(mark time.Time) error {
	return &archive.UnfollowedError{
		Why: fmt.Sprintf("%s stays in the table: the states of subjects lack decisions of it, as they have what was stored before %s", d.day, mark.UTC().Format(time.RFC3339)),
		Do: "run a desk with DOCKET_STATES=true until it has caught up, and then the same again; with --without-states the day is archived, and these decisions are in no state; " +
			"where no desk keeps states any more: SELECT decision_states_restart()",
	}
}
