//go:build integration

package load

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"docket/bench"
)

// bareSessions is how many sessions of COPY there are: as many as low batches that a program writes at a time.
const bareSessions = 3

// bareRows is how many rows a COPY has.
const bareRows = 5000

// bareCommits says what this machine leaves for a commit beside a bulk load, without Docket. It commits single rows at the
// rate of the urgent lane. First they are alone, and then beside sessions of COPY that write the same kind of decisions.
// The table has one index. It returns the two p99 in milliseconds.
func (y *system) bareCommits(d time.Duration) (alone, beside float64) {
	y.t.Helper()
	_, err := y.pool.Exec(y.t.Context(), "CREATE TABLE bare (decision_id text PRIMARY KEY, raw bytea NOT NULL)")
	y.must(err)
	alone = y.commits(d)
	ctx, stop := context.WithCancel(y.t.Context())
	defer stop()
	copies, copying := errgroup.WithContext(ctx)
	for range bareSessions {
		conn := y.connect()
		seeds++
		decisions := bench.NewDecisions(seeds, time.Now())
		copies.Go(func() error {
			for copying.Err() == nil {
				rows := make([][]any, bareRows)
				for i := range rows {
					d := decisions.Next()
					rows[i] = []any{d.ID, d.Value}
				}
				if _, err := conn.CopyFrom(copying, pgx.Identifier{"bare"}, []string{"decision_id", "raw"}, pgx.CopyFromRows(rows)); err != nil {
					return err
				}
			}
			return copying.Err()
		})
	}
	beside = y.commits(d)
	if copying.Err() != nil {
		y.must(copies.Wait())
	}
	stop()
	_ = copies.Wait() // it was told to end
	return alone, beside
}

// commits inserts a row every 20 ms, as the urgent lane does with 50 decisions a second, and returns the p99 in milliseconds. A row
// that is late is measured from the moment when it was due.
func (y *system) commits(d time.Duration) float64 {
	y.t.Helper()
	conn := y.connect()
	seeds++
	decisions := bench.NewDecisions(seeds, time.Now())
	var took []time.Duration
	const every = 20 * time.Millisecond
	began := time.Now()
	for due := began; due.Sub(began) < d; due = due.Add(every) {
		y.pause(time.Until(due))
		one := decisions.Next()
		_, err := conn.Exec(y.t.Context(), "INSERT INTO bare (decision_id, raw) VALUES ($1, $2)", one.ID, one.Value)
		y.must(err)
		took = append(took, time.Since(due))
	}
	return Quantile(took, 0.99)
}
