package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/ledger"
)

var _ ledger.Upkeep = (*Ledger)(nil)

// What one call ends at most: so many leases in a transaction, so many transactions. The rest is for the next call, as its
// caller has other things to see to meanwhile.
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
	// What was claimed since is being published.
	idleSQL = `WITH unsent AS (
			SELECT dead_letter_id, claimed_until FROM dead_letter_outbox
			WHERE dead_letter_id = ANY($1::text[]) AND published_at IS NULL AND ended_at IS NULL ORDER BY outbox_id FOR UPDATE)
		SELECT id FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT FROM unsent u WHERE u.dead_letter_id = id AND u.claimed_until > clock_timestamp())`
	leaseEndedSQL = `UPDATE dead_letters SET state = 'PENDING', changed_at = clock_timestamp(), changed_by = $2::text, changed_act = 'lease_ended', why = $3::text,
			owner = NULL, lease_until = NULL
		WHERE dead_letter_id = ANY($1::text[])`
)

// EndLeases implements [ledger.Upkeep]. What is being published just now is left until its claim lapses.
func (l *Ledger) EndLeases(ctx context.Context, by ledger.Actor) (int, error) {
	if by.Name == "" {
		return 0, errNobody
	}
	why := by.Why
	if why == "" {
		why = "nothing was heard of the retry for too long"
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
			_, err = tx.Exec(ctx, leaseEndedSQL, idle, ledgerText(by.Name), ledgerText(why))
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

const lettersUnarchivedSQL = `SELECT count(*) FROM dead_letters d WHERE ` + onlyCopySQL + ` AND d.changed_at < $1`

// Unarchived implements [ledger.Upkeep].
func (l *Ledger) Unarchived(ctx context.Context, resolvedBefore time.Time) (n int64, err error) {
	err = l.within(ctx, "count dead letters that no archive has", pgx.ReadOnly, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, lettersUnarchivedSQL, resolvedBefore).Scan(&n)
	})
	return n, err
}

// Remove implements [ledger.Upkeep]. The retries of what is removed go with it, but for those that ended dead: their records
// may stand in a dead-letter topic for longer, under ids of their own, and have to be known when they are read again. What was edited
// stays until its rows say so.
func (l *Ledger) Remove(ctx context.Context, resolvedBefore time.Time, n int, by ledger.Actor) (int, error) {
	if by.Name == "" {
		return 0, errNobody
	}
	removed := 0
	err := l.within(ctx, "remove resolved dead letters", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		ids, err := textsOf(tx.Query(ctx, `SELECT d.dead_letter_id FROM dead_letters d WHERE `+removableSQL+` AND d.changed_at < $1::timestamptz
			AND d.dead_letter_id <> ALL (ARRAY(`+unmarkedSQL+`))
			ORDER BY d.changed_at LIMIT $2::int FOR UPDATE SKIP LOCKED`, resolvedBefore, n))
		if err != nil || len(ids) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT set_config('docket.actor', $1, true), set_config('docket.why', $2, true)`,
			ledgerText(by.Name), ledgerText(by.Why)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM dead_letter_outbox o USING (
				SELECT outbox_id FROM dead_letter_outbox WHERE dead_letter_id = ANY($1::text[]) AND outcome IS DISTINCT FROM 'dead' ORDER BY outbox_id FOR UPDATE) n
			WHERE o.outbox_id = n.outbox_id`, ids); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM dead_letters WHERE dead_letter_id = ANY($1::text[])`, ids)
		removed = int(tag.RowsAffected())
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

// compactSQL takes the rows that it sees and puts their sum in their place; what is added meanwhile is left for the next time.
const compactSQL = `WITH many AS (
		SELECT group_id, path, state FROM dead_letter_counts GROUP BY 1, 2, 3 HAVING count(*) > 1 OR sum(n) = 0),
	gone AS (
		DELETE FROM dead_letter_counts c USING many m WHERE (c.group_id, c.path, c.state) = (m.group_id, m.path, m.state)
		RETURNING c.group_id, c.path, c.state, c.n)
	INSERT INTO dead_letter_counts SELECT group_id, path, state, sum(n) FROM gone GROUP BY 1, 2, 3 HAVING sum(n) <> 0`

// compactDaysSQL is the same for the sums by day.
const compactDaysSQL = `WITH many AS (
		SELECT day, origin_topic, origin_partition, group_id, state FROM dead_letter_days GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 1 OR sum(n) = 0),
	gone AS (
		DELETE FROM dead_letter_days c USING many m
		WHERE (c.day, c.origin_topic, c.origin_partition, c.group_id, c.state) = (m.day, m.origin_topic, m.origin_partition, m.group_id, m.state)
		RETURNING c.*)
	INSERT INTO dead_letter_days SELECT day, origin_topic, origin_partition, group_id, state, sum(n) FROM gone GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0`

// compactEndsSQL is the same for how the retries of jobs ended.
const compactEndsSQL = `WITH many AS (
		SELECT job_id, outcome FROM dead_letter_job_ends GROUP BY 1, 2 HAVING count(*) > 1 OR sum(n) = 0),
	gone AS (
		DELETE FROM dead_letter_job_ends e USING many m WHERE (e.job_id, e.outcome) = (m.job_id, m.outcome)
		RETURNING e.job_id, e.outcome, e.n)
	INSERT INTO dead_letter_job_ends SELECT job_id, outcome, sum(n) FROM gone GROUP BY 1, 2 HAVING sum(n) <> 0`

// Compact implements [ledger.Upkeep].
func (l *Ledger) Compact(ctx context.Context) error {
	return l.within(ctx, "sum up the counts of dead letters", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		for _, sql := range []string{compactSQL, compactDaysSQL, compactEndsSQL} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}
