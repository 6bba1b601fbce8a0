//go:build integration

package bench

import (
	"context"
	"fmt"
	"time"
)

// grown is a table with rows in it, in a schema of its own, so that rounds alternate.
type grown struct {
	schema, name string
	rows         int
	whole        bool // one table, without partitions
}

// growth compares a drain into tables that have many rows with one into an empty table. One is the table of partitions that
// Docket makes, with the rows in the days before the drained one. The other is a single table of as many rows.
func (b *bench) growth(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	empty := b.dsn
	defer func() { b.dsn = empty }()
	none := grown{name: "empty table, beside the full ones"}
	quarter := grown{"quarter", "a quarter of the rows in partitions", b.Filler / 4, false}
	full := grown{"filled", "all the rows in partitions", b.Filler, false}
	whole := grown{"whole", "all the rows in one table", b.Filler, true}
	acts := []func() error{func() error { return b.drainGrown(ctx, t, empty, none) }}
	for _, g := range []grown{quarter, full, whole} {
		if err := b.fill(ctx, empty, g); err != nil {
			return fmt.Errorf("fill %s: %w", g.schema, err)
		}
		acts = append(acts, func() error { return b.drainGrown(ctx, t, empty, g) })
	}
	b.dsn = empty
	if err := b.sql(ctx, "CHECKPOINT"); err != nil {
		return err
	}
	if err := b.rounds(b.Rounds, acts...); err != nil {
		return err
	}
	b.judgeGrowth(none, quarter, full, whole)
	b.dsn = empty
	return b.sql(ctx, "DROP SCHEMA quarter CASCADE", "DROP SCHEMA filled CASCADE", "DROP SCHEMA whole CASCADE")
}

func (g grown) first() string { return "Docket, " + g.name }
func (g grown) again() string { return "Docket again, " + g.name }

func (b *bench) judgeGrowth(none, quarter, full, whole grown) {
	wal := func(r Run) float64 { return float64(r.WAL) / float64(r.Rows) }
	b.judge(fmt.Sprintf("rate with %d rows there, against none", full.rows), Between(b.runs[full.first()], b.runs[none.first()], Rates), AtLeast(0.9), "", "30 days of rows; the day that is drained is empty")
	b.judge(fmt.Sprintf("trend: with %d rows, against none", quarter.rows), Between(b.runs[quarter.first()], b.runs[none.first()], Rates), nil, "", "")
	b.judge(fmt.Sprintf("one table without partitions with %d rows, against none", whole.rows), Between(b.runs[whole.first()], b.runs[none.first()], Rates), nil, "", "for comparison")
	b.judge(fmt.Sprintf("a second time with %d rows there, against none", full.rows), Between(b.runs[full.again()], b.runs[none.again()], Rates), nil, "", "every decision is looked up")
	for _, g := range []grown{none, quarter, full, whole} {
		b.judge("log of Postgres, bytes a row: "+g.name, Over(b.runs[g.first()], wal), nil, "%.0f", "")
	}
}

// drainGrown drains into a table, a second time where it is one of partitions, and takes away again what came.
func (b *bench) drainGrown(ctx context.Context, t topic, empty string, g grown) error {
	b.dsn = empty
	if g.schema != "" {
		b.dsn = with(empty, "search_path", g.schema)
	}
	rows, n := int64(g.rows), int64(t.decisions)
	away := []string{"TRUNCATE " + partition(drainedDay), "CHECKPOINT"}
	if g.whole {
		away = []string{"DELETE FROM decision_logs WHERE source_topic = '" + t.name + "'", "VACUUM decision_logs", "CHECKPOINT"}
	}
	_, err := b.measure(ctx, g.first(), func(ctx context.Context) (Run, error) {
		if g.schema != "" {
			if err := b.sql(ctx, away...); err != nil {
				return Run{}, err
			}
		}
		return b.drained(ctx, load{topic: t, filled: g.schema != "", from: rows})
	})
	if err != nil {
		return err
	}
	if !g.whole {
		_, err = b.measure(ctx, g.again(), func(ctx context.Context) (Run, error) {
			return b.drained(ctx, load{topic: t, homes: map[string]int64{"duplicate": n}, filled: true, from: rows + n})
		})
		if err != nil {
			return err
		}
	}
	if g.schema == "" {
		return b.emptied(ctx)
	}
	return b.sql(ctx, away...)
}

// drainedDay is the day of the decisions in the topics.
var drainedDay = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// days is the number of days before that one that have the filler.
const days = 30

func partition(day time.Time) string { return "decision_logs_p" + day.Format("20060102") }
