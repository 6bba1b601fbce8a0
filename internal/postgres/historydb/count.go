package historydb

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

// counting is one round of [Reader.Count] at a time.
type counting struct {
	sync.Mutex
	ahead time.Duration // by how much less than countSlack the mark stays behind; tests have it
}

const (
	// countSlack is that of the mark: a clock that is put back by more, on the server, leaves what is stored meanwhile uncounted.
	countSlack = 2 * time.Minute
	// countSpan is what is counted in one transaction at first.
	countSpan = time.Hour
	// countRound is the longest time of one round; the rest is for the next.
	countRound = 20 * time.Second
)

const (
	// countableSQL says whether this role may count, here and now: a standby takes no writes.
	countableSQL = `
SELECT NOT pg_is_in_recovery() AND coalesce(has_function_privilege(to_regprocedure('decision_counts_count(interval, interval)')::oid, 'EXECUTE'), false)`
	// countLimitsSQL also has rows counted by a hash table. The server expects a group for each time, and would sort all payloads.
	countLimitsSQL = `SELECT set_config('statement_timeout', $1, true), set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)`
	markSQL        = `SELECT stored_before FROM decision_counts_mark`
	countSQL       = `SELECT counted, more FROM decision_counts_count($1::interval, $2::interval)`

	tallySQL = `
       count(*) FILTER (WHERE v = 'allowed') AS allowed, count(*) FILTER (WHERE v = 'denied') AS denied, count(*) FILTER (WHERE v = 'undefined') AS undefined,
       count(*) FILTER (WHERE v = 'error') AS error, count(*) FILTER (WHERE v = 'other') AS other`
	// freshSQL sums up by hour what is selected behind it, as lines that keepSQL adds to the counts.
	freshSQL = `
WITH fresh AS MATERIALIZED (
SELECT hour, path, service, ` + tallySQL + `
  FROM (SELECT date_trunc('hour', d.ts, 'UTC') AS hour, d.path, d.service, ` + verdictSQL + ` AS v FROM `
	// keepSQL adds lines to those of hours and those of days, as who counts does.
	keepSQL = `
SELECT decision_counts_keep(array_agg(ROW (hour, path, service, allowed, denied, undefined, error, other)::decision_counts)) FROM fresh`
)

// Count adds stored decisions to the counts from which [Reader.Stats] answers, up to a moment before which no more can be
// stored. It says how many decisions that were. Of several that do it at once one works. It does nothing where the tables
// are not there, or this role may not write them: the answers are right without it, and slower.
func (r *Reader) Count(ctx context.Context) (int64, error) {
	r.counts.Lock()
	defer r.counts.Unlock()
	ctx, cancel := context.WithTimeout(ctx, countRound+r.db.Timeout())
	defer cancel()
	if err := r.db.Usable(); err != nil {
		return 0, err
	}
	var able bool
	if err := r.db.Pool().QueryRow(ctx, countableSQL).Scan(&able); err != nil || !able {
		return 0, r.db.Noted("look for the counts of decisions", err)
	}
	var sum int64
	span := countSpan
	for end := time.Now().Add(countRound); time.Now().Before(end); {
		began := time.Now()
		n, more, err := r.countOnce(ctx, span)
		if sum += n; err != nil || !more {
			return sum, r.db.Noted("count decisions", err)
		}
		if time.Since(began) < time.Second {
			span *= 2
		} else {
			span = countSpan
		}
	}
	return sum, nil
}

// countOnce counts what was stored in one span from the mark on, and says whether there is more.
func (r *Reader) countOnce(ctx context.Context, span time.Duration) (sum int64, more bool, err error) {
	err = pgx.BeginTxFunc(ctx, r.db.Pool(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, countLimitsSQL, string(db.Milliseconds(r.db.Timeout()))); err != nil {
			return err
		}
		return tx.QueryRow(ctx, countSQL, span, countSlack-r.counts.ahead).Scan(&sum, &more)
	})
	if err != nil {
		return 0, false, err
	}
	return sum, more, nil
}
