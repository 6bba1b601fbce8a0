//go:build integration

package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

// Both look-ups and both comparisons go by the index; with the time they touch the one partition that can have the row.
func TestPlans_LookupsGoByTheIndex(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `SELECT decision_logs_make_partitions(60); SELECT decision_logs_make_partitions(60);
		INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
		SELECT 'd' || n, date_trunc('day', now()) + n % 60 * interval '1 day', '{}', 'filler', 0, n, 0 FROM generate_series(1, 60000) AS n;
		ANALYZE decision_logs`)
	ids, times, raws := []string{"d7", "d8", "d9"}, []time.Time{day(7), day(8), day(9)}, []string{"{}", "{}", "{}"}
	for name, c := range map[string]struct {
		sql  string
		args []any
		most int // partitions that are looked into
	}{
		"comparison": {store.CompareSQL, []any{ids, times, raws, day(7), day(9)}, 3},
		"known":      {store.KnownSQL, []any{ids, times, [][]byte{{1}, {2}, {3}}, day(7), day(9)}, 3},
		"lookup":     {store.LookupSQL, []any{ids, times, raws, [][]byte{{1}, nil, {3}}, [][]byte{nil, nil, {3}}}, 3},
		"by id":      {store.ByIDSQL, []any{"d7"}, 63},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := name == "comparison" || name == "known" // with the planner as it comes
			plan := explained(t, d, !stores, c.sql, c.args...)
			looked := 0
			for line := range strings.SplitSeq(plan, "\n") {
				if !strings.Contains(line, " on decision_logs_") || strings.Contains(line, "never executed") {
					continue
				}
				if looked++; strings.Contains(line, "Seq Scan") {
					t.Errorf("reads a partition from end to end: %s", line)
				}
			}
			if looked == 0 || looked > c.most {
				t.Errorf("looks into %d partitions, want up to %d:\n%s", looked, c.most, plan)
			}
			if named := strings.Count(plan, " on decision_logs_"); stores && named != looked {
				t.Errorf("%d partitions were planned for, want those %d alone", named, looked)
			}
			t.Log(plan[strings.LastIndex(plan, "Planning Time"):])
		})
	}
}

func explained(t *testing.T, d *pgtest.DB, byIndex bool, sql string, args ...any) string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var lines []string
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if byIndex {
			if _, err := tx.Exec(ctx, store.ByIndexSQL, "60000"); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS) "+sql, args...)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
