//go:build integration

package bench

import (
	"context"
	"fmt"
)

// growth compares a drain into a table that has many rows with one into an empty table. The full table is in a schema of its own, so
// that rounds alternate; what a drain brought is deleted again.
func (b *bench) growth(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	empty := b.dsn
	full := with(empty, "search_path", "filled")
	if err := b.fill(ctx, empty, full); err != nil {
		return err
	}
	defer func() { b.dsn = empty }()
	const emptyName, fullName = "Docket, empty table, beside the full one", "Docket, full table"
	err = b.rounds(b.Rounds,
		func() error {
			b.dsn = empty
			_, err := b.measure(ctx, emptyName, func(ctx context.Context) (Run, error) { return b.drained(ctx, load{topic: t}) })
			return err
		},
		func() error {
			b.dsn = full
			_, err := b.measure(ctx, fullName, func(ctx context.Context) (Run, error) {
				run, err := b.drained(ctx, load{topic: t, filled: true, from: int64(b.Filler)})
				if err != nil {
					return run, err
				}
				return run, b.sql(ctx, "DELETE FROM decision_logs WHERE source_topic = '"+t.name+"'", "VACUUM decision_logs")
			})
			return err
		})
	if err != nil {
		return err
	}
	walPerRow := func(r Run) float64 { return float64(r.WAL) / float64(r.Rows) }
	b.judge(fmt.Sprintf("rate with %d rows there, against none", b.Filler), Between(b.runs[fullName], b.runs[emptyName], Rates), AtLeast(0.9), "", "")
	b.judge("log of Postgres with those rows there, bytes a row", Over(b.runs[fullName], walPerRow), nil, "%.0f", "")
	b.judge("log of Postgres into the empty table, bytes a row", Over(b.runs[emptyName], walPerRow), nil, "%.0f", "")
	return b.sql(ctx, "DROP SCHEMA filled CASCADE")
}

// fill makes a second table and writes rows into it on the server: narrow ones, but with an index of full size.
func (b *bench) fill(ctx context.Context, empty, full string) error {
	if err := b.sql(ctx, "CREATE SCHEMA filled"); err != nil {
		return err
	}
	if err := b.migrate(ctx, full); err != nil {
		return err
	}
	b.dsn = full
	defer func() { b.dsn = empty }()
	const step = 1_000_000
	for from := 0; from < b.Filler; from += step {
		to := min(from+step, b.Filler)
		err := b.sql(ctx, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
			SELECT gen_random_uuid()::text, timestamptz '2026-01-01' + n * interval '1 ms', '{}', 'filler', 0, n, 0 FROM generate_series(%d, %d) AS n`, from, to-1))
		if err != nil {
			return fmt.Errorf("fill the table: %w", err)
		}
		b.say("  %d rows of filler", to)
	}
	return b.sql(ctx, "VACUUM ANALYZE decision_logs", "CHECKPOINT")
}
