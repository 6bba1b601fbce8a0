package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// counting is what a reader remembers between two rounds of [Reader.Count].
type counting struct {
	sync.Mutex
	horizon horizon
	ahead   time.Duration // by how much less than countSlack the mark stays behind; tests have it
}

const (
	// countSlack is that of the mark: a clock that is put back by more, on the server, leaves what is stored meanwhile uncounted.
	countSlack = 2 * time.Minute
	// countSpan is what is counted in one transaction at first.
	countSpan = time.Hour
	// countRound is how long one round goes on; the rest is for the next.
	countRound = 20 * time.Second
)

const (
	// countableSQL says whether this role may count: all of it or none, as hours and days say the same only where both are kept.
	// Each right is asked for by itself, since of several in one question any one is enough.
	countableSQL = `
SELECT bool_and(coalesce(has_table_privilege(to_regclass(need.of)::oid, need.a), false))
  FROM (VALUES ('decision_counts', 'SELECT'), ('decision_counts', 'INSERT'), ('decision_counts', 'DELETE'),
               ('decision_counts_days', 'SELECT'), ('decision_counts_days', 'INSERT'), ('decision_counts_days', 'DELETE'),
               ('decision_counts_mark', 'SELECT'), ('decision_counts_mark', 'UPDATE')) AS need(of, a)`
	countLimitsSQL  = `SELECT set_config('statement_timeout', $1, true), set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true)`
	countLockSQL    = `SELECT pg_try_advisory_xact_lock('decision_counts_mark'::regclass::int, 1)`
	markSQL         = `SELECT stored_before FROM decision_counts_mark`
	moveMarkSQL     = `UPDATE decision_counts_mark SET stored_before = $1::timestamptz`
	storedBeforeSQL = `SELECT EXISTS (SELECT FROM decision_logs WHERE stored_at < $1::timestamptz)`

	tallySQL = `
       count(*) FILTER (WHERE v = 'allowed') AS allowed, count(*) FILTER (WHERE v = 'denied') AS denied, count(*) FILTER (WHERE v = 'undefined') AS undefined,
       count(*) FILTER (WHERE v = 'error') AS error, count(*) FILTER (WHERE v = 'other') AS other`
	// freshSQL sums up by hour what is selected behind it, as lines that keepSQL adds to the counts.
	freshSQL = `
WITH fresh AS MATERIALIZED (
SELECT hour, path, service, ` + tallySQL + `
  FROM (SELECT date_trunc('hour', d.ts, 'UTC') AS hour, d.path, d.service, ` + verdictSQL + ` AS v FROM `
	// keepSQL adds lines to those of hours and those of days, in one statement, so that neither is ever without the other.
	keepSQL = `
days AS (
INSERT INTO decision_counts_days (day, path, service, allowed, denied, undefined, error, other)
SELECT date_trunc('day', hour, 'UTC'), path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM fresh GROUP BY 1, 2, 3)
INSERT INTO decision_counts (hour, path, service, allowed, denied, undefined, error, other)
SELECT hour, path, service, allowed, denied, undefined, error, other FROM fresh`
	addCountsSQL = freshSQL + `decision_logs d WHERE d.stored_at >= $1::timestamptz AND d.stored_at < $2::timestamptz) AS d
 GROUP BY hour, path, service),` + keepSQL + `
RETURNING hour, allowed + denied + undefined + error + other`
	// foldCountsSQL puts the sum in the place of lines that are many for their hour, or whose hour is over.
	foldCountsSQL = `
WITH many AS (SELECT hour FROM decision_counts WHERE hour = ANY($1::timestamptz[])
               GROUP BY hour HAVING count(*) > count(DISTINCT (path, service)) * CASE WHEN hour < now() - interval '3 hours' THEN 1 ELSE 10 END),
     gone AS (DELETE FROM decision_counts c USING many m WHERE c.hour = m.hour RETURNING c.*)
INSERT INTO decision_counts (hour, path, service, allowed, denied, undefined, error, other)
SELECT hour, path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM gone GROUP BY 1, 2, 3`
	// foldDaysSQL does so with days. What is over keeps up to two lines on average: a day is larger than an hour, and what comes late comes in drops.
	foldDaysSQL = `
WITH many AS (SELECT day FROM decision_counts_days WHERE day = ANY(ARRAY(SELECT DISTINCT date_trunc('day', hour, 'UTC') FROM unnest($1::timestamptz[]) AS hour))
               GROUP BY day HAVING count(*) > count(DISTINCT (path, service)) * CASE WHEN day < now() - interval '27 hours' THEN 2 ELSE 10 END),
     gone AS (DELETE FROM decision_counts_days c USING many m WHERE c.day = m.day RETURNING c.*)
INSERT INTO decision_counts_days (day, path, service, allowed, denied, undefined, error, other)
SELECT day, path, service, sum(allowed), sum(denied), sum(undefined), sum(error), sum(other) FROM gone GROUP BY 1, 2, 3`
)

// Count adds what was stored to the counts that [Reader.Stats] is answered from, up to a moment before which no more can be
// stored, and says how many decisions that were. Of several that do it at once one works. Where the tables are not
// there, or not to be written by this role, it does nothing: the answers are right without it, and slower.
func (r *Reader) Count(ctx context.Context) (int64, error) {
	r.counts.Lock()
	defer r.counts.Unlock()
	ctx, cancel := context.WithTimeout(ctx, countRound+r.db.timeout)
	defer cancel()
	if r.db.closed.Load() {
		return 0, errPoolClosed()
	}
	var able bool
	if err := r.db.pool.QueryRow(ctx, countableSQL).Scan(&able); err != nil || !able {
		return 0, r.db.noted("look for the counts of decisions", err)
	}
	// It is asked before the transactions that count begin, so that they see all that was stored until then.
	done, _, err := r.counts.horizon.complete(ctx, r, countSlack-r.counts.ahead)
	if err != nil || done.IsZero() {
		return 0, r.db.noted("look for open transactions", err)
	}
	var sum int64
	span := countSpan
	for end := time.Now().Add(countRound); time.Now().Before(end); {
		began := time.Now()
		n, more, err := r.countOnce(ctx, done, span)
		if sum += n; err != nil || !more {
			return sum, r.db.noted("count decisions", err)
		}
		if time.Since(began) < time.Second {
			span *= 2
		} else {
			span = countSpan
		}
	}
	return sum, nil
}

// countOnce counts what was stored in one span from the mark on, and says whether there is more before done.
func (r *Reader) countOnce(ctx context.Context, done time.Time, span time.Duration) (sum int64, more bool, err error) {
	err = pgx.BeginTxFunc(ctx, r.db.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, countLimitsSQL, string(milliseconds(r.db.timeout))); err != nil {
			return err
		}
		var mine bool
		var from pgtype.Timestamptz
		if err := tx.QueryRow(ctx, countLockSQL).Scan(&mine); err != nil || !mine {
			return err
		}
		if err := tx.QueryRow(ctx, markSQL).Scan(&from); err != nil {
			return err
		}
		if from.InfinityModifier == pgtype.NegativeInfinity {
			from = pgtype.Timestamptz{Time: done, Valid: true}
			for back := 24 * time.Hour; back < 100*365*24*time.Hour; back *= growth {
				from.Time = done.Add(-back)
				var earlier bool
				if err := tx.QueryRow(ctx, storedBeforeSQL, from.Time).Scan(&earlier); err != nil {
					return err
				}
				if !earlier {
					break
				}
			}
		}
		to := from.Time.Add(span)
		if more = to.Before(done); !more {
			to = done
		}
		if !from.Time.Before(to) {
			return nil
		}
		var hours []time.Time
		var hour time.Time
		var n int64
		rows, err := tx.Query(ctx, addCountsSQL, from.Time, to)
		if err != nil {
			return err
		}
		seen := map[int64]bool{}
		if _, err := pgx.ForEachRow(rows, []any{&hour, &n}, func() error {
			if sum += n; !seen[hour.Unix()] {
				seen[hour.Unix()] = true
				hours = append(hours, hour)
			}
			return nil
		}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, foldCountsSQL, hours); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, foldDaysSQL, hours); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, moveMarkSQL, to)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return sum, more, nil
}
