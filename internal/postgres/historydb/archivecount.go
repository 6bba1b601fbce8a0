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

// A day that is taken out is counted no more by whoever counts, so it has to be counted before. Most of that is done
// while others write; what came since the mark can only be counted while nobody does, and is bounded: in rows before, and in time
// by the server.
const (
	leavingRows = 20_000
	leavingTime = 400 * time.Millisecond
	// leavingPatience is how long it is waited for fewer of them.
	leavingPatience = 30 * time.Second
	countPause      = 200 * time.Millisecond
	// leavingTries is how often counting may take longer than leavingTime. On a busy server one slow count says little.
	leavingTries = 5
	leavingPause = 2 * time.Second
)

const (
	countWaitSQL = `SELECT pg_advisory_xact_lock('decision_counts_mark'::regclass::int, 1)`
	// countLeavingSQL counts what was taken out before it was counted, as whoever counts finds it no more.
	countLeavingSQL = freshSQL + `%table% d WHERE d.stored_at >= (SELECT stored_before FROM decision_counts_mark) AND NOT ` + lateSQL + `) AS d
 GROUP BY hour, path, service)` + keepSQL
	// uncountedSQL is how many rows that would be, up to one more than may be.
	uncountedSQL = `SELECT count(*) FROM (SELECT FROM %table% d WHERE d.stored_at >= (SELECT stored_before FROM decision_counts_mark) LIMIT $1::int8 + 1) AS few`

	// countLackingSQL adds what the table has of a day, stored before the mark, and the counts do not: rows of another database, or of
	// an archive that is older than the counts. A row that lacks under its own path can have been counted as (other), of its service or of all.
	countLackingSQL = `
WITH has AS MATERIALIZED (
SELECT hour, path, service, v, count(*) AS n
  FROM (SELECT date_trunc('hour', d.ts, 'UTC') AS hour, d.path, d.service, ` + verdictSQL + ` AS v FROM %rows%
           AND d.stored_at < (SELECT stored_before FROM decision_counts_mark)) AS d
 GROUP BY hour, path, service, v),
counted AS MATERIALIZED (
SELECT c.hour, c.path, c.service, x.v, sum(x.n) AS n
  FROM decision_counts c, LATERAL (VALUES ('allowed', c.allowed), ('denied', c.denied), ('undefined', c.undefined), ('error', c.error), ('other', c.other)) AS x (v, n)
 WHERE c.hour >= $1::timestamptz AND c.hour < $2::timestamptz GROUP BY 1, 2, 3, 4),
lacks AS (
SELECT h.hour, h.path, h.service, h.v, greatest(h.n - coalesce(c.n, 0), 0) AS n
  FROM has h LEFT JOIN counted c ON ` + sameLineSQL + `),
others AS MATERIALIZED (
SELECT c.hour, coalesce(c.service, '') AS service, c.v, sum(greatest(c.n - coalesce(h.n, 0), 0)) AS n
  FROM counted c LEFT JOIN has h ON ` + sameLineSQL + ` WHERE c.path = '(other)' GROUP BY 1, 2, 3),
of_service AS (
SELECT l.hour, l.path, l.service, l.v, least(l.n, greatest(sum(l.n) OVER (PARTITION BY l.hour, l.service, l.v ORDER BY l.path) - coalesce(o.n, 0), 0)) AS n
  FROM lacks l LEFT JOIN others o ON o.hour = l.hour AND o.v = l.v AND o.service = coalesce(l.service, '') AND o.service <> '(other)'),
of_all AS (
SELECT l.hour, l.path, l.service, l.v, least(l.n, greatest(sum(l.n) OVER (PARTITION BY l.hour, l.v ORDER BY l.service, l.path) - coalesce(o.n, 0), 0)) AS n
  FROM of_service l LEFT JOIN others o ON o.hour = l.hour AND o.v = l.v AND o.service = '(other)'),
fresh AS MATERIALIZED (
SELECT hour, path, service, coalesce(sum(n) FILTER (WHERE v = 'allowed'), 0) AS allowed, coalesce(sum(n) FILTER (WHERE v = 'denied'), 0) AS denied,
       coalesce(sum(n) FILTER (WHERE v = 'undefined'), 0) AS undefined, coalesce(sum(n) FILTER (WHERE v = 'error'), 0) AS error,
       coalesce(sum(n) FILTER (WHERE v = 'other'), 0) AS other
  FROM of_all WHERE n > 0 GROUP BY 1, 2, 3)` + keepSQL

	// sameLineSQL joins by what can be hashed, and then tells what is empty from what is NULL.
	sameLineSQL = `c.hour = h.hour AND c.v = h.v AND coalesce(c.path, '') = coalesce(h.path, '') AND coalesce(c.service, '') = coalesce(h.service, '')
       AND c.path IS NOT DISTINCT FROM h.path AND c.service IS NOT DISTINCT FROM h.service`

	// holderSQL is who holds the mark back: of the transactions that openSQL has, that which is open for longest.
	holderSQL = `
SELECT a.pid, a.application_name, a.xact_start FROM pg_locks l JOIN pg_stat_activity a USING (pid)
 WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND a.usesysid IS NOT NULL
   AND (a.datid IS NULL OR a.datid = 0 OR a.datid = (SELECT oid FROM pg_database WHERE datname = current_database())) AND l.pid <> pg_backend_pid()
 ORDER BY a.xact_start NULLS LAST LIMIT 1`
)

// countable says whether this role counts.
func (d *archiveDay) countable(ctx context.Context) (able bool, err error) {
	err = d.conn.QueryRow(ctx, countableSQL).Scan(&able)
	return able, err
}

func (d *archiveDay) mark(ctx context.Context) (mark pgtype.Timestamptz, err error) {
	err = d.conn.QueryRow(ctx, markSQL).Scan(&mark)
	return mark, err
}

// countUntil has decisions counted, as nobody else does it without a desk, until enough says so. It gives up where that takes longer
// than it has patience, and the mark is held back or near the clock.
func (d *archiveDay) countUntil(ctx context.Context, patience time.Duration, enough func(mark pgtype.Timestamptz) (bool, error)) (bool, error) {
	r := NewReader(d.of.db)
	r.counts.ahead = d.of.ahead
	var last pgtype.Timestamptz
	for began := time.Now(); ; {
		if _, err := r.Count(ctx); err != nil {
			return false, err
		}
		mark, err := d.mark(ctx)
		if err != nil {
			return false, err
		}
		if ok, err := enough(mark); ok || err != nil {
			return ok, err
		}
		if mark != last && time.Since(mark.Time) > 2*countSlack {
			began = time.Now() // there is much to count
		}
		last = mark
		if d.of.hurry || time.Since(began) > patience {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(countPause):
		}
	}
}

// countBefore has so much of the day counted that what is left can be counted while writers wait.
func (d *archiveDay) countBefore(ctx context.Context) error {
	var left int64
	ok, err := d.countUntil(ctx, leavingPatience, func(pgtype.Timestamptz) (bool, error) {
		err := pgx.BeginFunc(ctx, d.conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, countLimitsSQL, "0"); err != nil {
				return err
			}
			return tx.QueryRow(ctx, strings.ReplaceAll(uncountedSQL, "%table%", d.table), leavingRows).Scan(&left)
		})
		return left <= leavingRows, err
	})
	if err == nil && !ok {
		err = d.uncounted(ctx, fmt.Sprintf("%s has more than %d rows that are not counted yet", d.day, leavingRows))
	}
	return err
}

// countLeaving counts the rest, which is out of the table.
func (d *archiveDay) countLeaving(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, countLimitsSQL, string(db.Milliseconds(d.of.within))); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, strings.ReplaceAll(countLeavingSQL, "%table%", pgx.Identifier{d.leaving()}.Sanitize())); err != nil {
		return err
	}
	leave, notes := leaveSQL, false
	if err := tx.QueryRow(ctx, notesSQL).Scan(&notes); err != nil {
		return err
	}
	if notes {
		leave = leaveKnownSQL
	}
	_, err := tx.Exec(ctx, leave, d.day.Time)
	return err
}

// errLeavingSlow says that writers would have waited for too long.
var errLeavingSlow = errors.New("counting took too long while writers wait")

// uncounted says why what there is to count is not counted, and what to do.
func (d *archiveDay) uncounted(ctx context.Context, why string) error {
	mark, err := d.mark(ctx)
	if err != nil {
		return err
	}
	since := "none of it is"
	if mark.InfinityModifier == pgtype.Finite {
		since = "what was stored before " + mark.Time.UTC().Format(time.RFC3339) + " is"
	}
	e := &archive.UncountedError{Why: why + "; " + since, Do: "run it again in some minutes; nothing was changed"}
	var pid int32
	var program string
	var begun *time.Time
	switch err := d.conn.QueryRow(ctx, holderSQL).Scan(&pid, &program, &begun); {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return err
	default:
		e.Do = "a transaction that is open holds back what can be counted: " + db.SessionName(pid, program, begun) +
			fmt.Sprintf(". Wait until it has ended, or end it (SELECT pg_terminate_backend(%d)), and run the same again; nothing was changed", pid)
	}
	return e
}

// errAhead says that rows were to be loaded that the mark has not passed: those may be counted already, and would be again once it has.
type errAhead struct{ newest time.Time }

func (e *errAhead) Error() string { return "rows are newer than the mark of the counts" }

// behind says in tx whether the mark has passed what was loaded last.
func (d *archiveDay) behind(ctx context.Context, tx pgx.Tx, newest *time.Time) error {
	if newest == nil {
		return nil
	}
	d.mu.Lock()
	past := d.past
	d.mu.Unlock()
	if newest.Before(past) {
		return nil
	}
	var able bool
	if err := tx.QueryRow(ctx, countableSQL).Scan(&able); err != nil || !able {
		return err
	}
	var mark pgtype.Timestamptz
	if err := tx.QueryRow(ctx, markSQL).Scan(&mark); err != nil {
		return err
	}
	if mark.InfinityModifier != pgtype.Finite || !newest.Before(mark.Time) {
		return &errAhead{*newest}
	}
	d.mu.Lock()
	d.past = mark.Time
	d.mu.Unlock()
	return nil
}

// pass waits until the mark has passed a time.
func (d *archiveDay) pass(ctx context.Context, newest time.Time) error {
	ok, err := d.countUntil(ctx, countSlack+time.Minute, func(mark pgtype.Timestamptz) (bool, error) {
		return mark.InfinityModifier == pgtype.Finite && newest.Before(mark.Time), nil
	})
	if err == nil && !ok {
		err = d.uncounted(ctx, fmt.Sprintf("the archive of %s has rows that were stored at %s, and decisions are not counted as far as that", d.day, newest.UTC().Format(time.RFC3339)))
	}
	return err
}

// Tally has what the table has of the day, and the counts do not, be counted. The day has no late decisions any more then.
func (d *archiveDay) Tally(ctx context.Context) error {
	for {
		err := d.locked(ctx, "counted", d.table, func(tx pgx.Tx) error {
			var able bool
			if err := tx.QueryRow(ctx, countableSQL).Scan(&able); err != nil || !able {
				return err
			}
			if _, err := tx.Exec(ctx, countWaitSQL); err != nil {
				return err
			}
			return d.back(ctx, tx)
		})
		ahead := (*errAhead)(nil)
		if !errors.As(err, &ahead) {
			return d.of.failed("count the day", err)
		}
		if err := d.pass(ctx, ahead.newest); err != nil {
			return d.refused("count the day", err)
		}
	}
}
