//go:build integration

package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// fill makes a second table and writes rows into it on the server: narrow ones, but with an index of full size, which is
// built when they are there.
func (b *bench) fill(ctx context.Context, empty string, g grown) error {
	b.dsn = empty
	if err := b.sql(ctx, "CREATE SCHEMA "+g.schema); err != nil {
		return err
	}
	b.dsn = with(empty, "search_path", g.schema)
	if g.whole {
		if err := b.sql(ctx, "CREATE TABLE decision_logs (LIKE public.decision_logs INCLUDING DEFAULTS)"); err != nil {
			return err
		}
	} else if err := b.makeDays(ctx); err != nil {
		return err
	}
	from := time.Now()
	var sessions errgroup.Group
	sessions.SetLimit(3)
	for n := range days {
		sessions.Go(func() error { return b.fillDay(ctx, g, n) })
	}
	if err := sessions.Wait(); err != nil {
		return err
	}
	finish := []string{"VACUUM (FREEZE, ANALYZE) decision_logs", "CHECKPOINT"}
	if g.whole {
		finish = append([]string{quickIndex, "ALTER TABLE decision_logs ADD PRIMARY KEY (decision_id, ts)",
			"CREATE INDEX ON decision_logs USING brin (ts)"}, finish...)
	}
	if err := b.sql(ctx, finish...); err != nil {
		return err
	}
	b.say("  %d rows of filler in %v: %s", g.rows, time.Since(from).Round(time.Second), g.name)
	return nil
}

const quickIndex = "SET maintenance_work_mem = '512MB'"

// makeDays migrates and has what is before the days of the filler end there.
func (b *bench) makeDays(ctx context.Context) error {
	if err := b.migrate(ctx, b.dsn); err != nil {
		return err
	}
	statements := []string{
		"ALTER TABLE decision_logs DETACH PARTITION decision_logs_before",
		fmt.Sprintf("ALTER TABLE decision_logs ATTACH PARTITION decision_logs_before FOR VALUES FROM (MINVALUE) TO ('%s')", stamp(drainedDay.AddDate(0, 0, -days))),
		"DROP TABLE IF EXISTS " + partition(drainedDay), // where that day is not over
		fmt.Sprintf("CREATE TABLE %s PARTITION OF decision_logs FOR VALUES FROM ('%s') TO ('%s')", partition(drainedDay), stamp(drainedDay), stamp(drainedDay.AddDate(0, 0, 1))),
	}
	return b.sql(ctx, statements...)
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

// fillDay writes the rows of one day.
func (b *bench) fillDay(ctx context.Context, g grown, n int) error {
	day := drainedDay.AddDate(0, 0, n-days)
	from, to := g.rows*n/days, g.rows*(n+1)/days
	table := "decision_logs"
	statements := []string{quickIndex, "SET synchronous_commit = off"}
	if !g.whole {
		table = partition(day)
		statements = append(statements, fmt.Sprintf("CREATE TABLE %s (LIKE decision_logs INCLUDING DEFAULTS)", table))
	}
	statements = append(statements, fmt.Sprintf(`INSERT INTO %s (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
		SELECT gen_random_uuid()::text, timestamptz '%s' + (n - %d) * interval '1 ms', '{}', 'filler', 0, n, 0 FROM generate_series(%[3]d, %d) AS n`, table, stamp(day), from, to-1))
	if !g.whole {
		statements = append(statements, fmt.Sprintf("ALTER TABLE %s ADD PRIMARY KEY (decision_id, ts)", table), fmt.Sprintf("CREATE INDEX ON %s USING brin (ts)", table),
			fmt.Sprintf("ALTER TABLE decision_logs ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')", table, stamp(day), stamp(day.AddDate(0, 0, 1))))
	}
	return b.sql(ctx, statements...)
}
