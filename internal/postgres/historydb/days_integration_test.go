//go:build integration

package historydb_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

// daysOver makes a table of four days that are over, 11 to 14 June 2024, each of n decisions. A path in four is "often/a/allow". The host is
// "10.0.0.1" one time in five, "10.0.0.2" on "often/a/allow" twice a day, else any of a hundred.
func daysOver(t testing.TB, n int, with string) *pgtest.DB {
	t.Helper()
	pg := pgtest.New(t)
	pg.Exec(t, `DROP TABLE decision_logs_before`)
	for day := 11; day <= 14; day++ {
		pg.Exec(t, fmt.Sprintf(`CREATE TABLE decision_logs_p202406%d PARTITION OF decision_logs FOR VALUES FROM ('2024-06-%[1]d Z') TO ('2024-06-%[2]d Z') %s`, day, day+1, with))
		pg.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, path, service, allowed, requested_by, raw, source_topic, source_partition, source_offset, source_index, stored_at)
			SELECT '%d-' || n, at, path, split_part(path, '/', 1), n %% 3 = 0, CASE WHEN n %% (%[2]d / 2) = 4 THEN '10.0.0.2:' WHEN n %% 5 = 0 THEN '10.0.0.1:' ELSE '10.0.1.' || n %% 100 || ':' END || n %% 60000,
			       jsonb_build_object('input', jsonb_build_object('user', 'u' || n %% 500, 'more', repeat('x', 600))), 't', 0, n, 0, at + interval '1 second'
			  FROM (SELECT n, '2024-06-%[1]d Z'::timestamptz + interval '1 day' * n / %[2]d AS at, CASE n %% 4 WHEN 0 THEN 'often/a/allow' ELSE 'seldom/p' || n %% 50 || '/allow' END AS path
			          FROM generate_series(0, %[2]d - 1) n) AS d ORDER BY n`, day, n))
	}
	pg.Exec(t, `ANALYZE decision_logs`)
	return pg
}

// unsummarized counts the ranges of pages of days that are over that are not summarized. It summarizes them.
func unsummarized(t testing.TB, pg *pgtest.DB) (n int) {
	t.Helper()
	pg.Query(t, `SELECT sum(brin_summarize_new_values(b.oid::regclass))::int FROM pg_class b JOIN pg_am a ON a.oid = b.relam JOIN pg_index x ON x.indexrelid = b.oid
		WHERE a.amname = 'brin' AND b.relkind = 'i' AND x.indrelid::regclass::text LIKE 'decision\_logs\_p202406%'`, &n)
	return n
}

// later inserts rows at the end of 12 June, which is over.
func later(t testing.TB, pg *pgtest.DB, name string, n int) {
	t.Helper()
	pg.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
		SELECT '%s-' || n, '2024-06-12 12:00Z', jsonb_build_object('more', repeat('x', 600)), 't', 1, n, 0 FROM generate_series(1, %d) n`, name, n))
}

func TestIndex_DaysThatAreOver(t *testing.T) {
	t.Parallel()
	pg := daysOver(t, 2000, "")
	desk := historydb.NewReader(open(t, pg.URL, 20*time.Second).DB)
	index(desk, t)
	same(t, unsummarized(t, pg), 0)
	index(desk, t) // it looks once at the indexes that it made
	later(t, pg, "late", 3000)
	index(desk, t)
	same(t, unsummarized(t, pg), 0)
	index(desk, t)
	// While nobody stores there it leaves the days alone: it would wait for this lock.
	locker, err := pgxConnect(t, pg.URL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locker.Rollback(context.WithoutCancel(t.Context())) }()
	for day := 11; day <= 14; day++ {
		if _, err := locker.Exec(t.Context(), fmt.Sprintf(`LOCK TABLE decision_logs_p202406%d IN SHARE UPDATE EXCLUSIVE MODE`, day)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if n, err := desk.Index(ctx); err != nil || n != 0 {
		t.Errorf("%d made, %v", n, err)
	}
}

// TestIndex_LimitsOfTheRole has a role whose statements and waits for locks may not take as long as an index does. Its days get their
// indexes all the same, and its other sessions keep the limits.
func TestIndex_LimitsOfTheRole(t *testing.T) {
	t.Parallel()
	pg := daysOver(t, 100, "")
	db := open(t, pg.URL, 20*time.Second)
	of := `ALTER DATABASE "` + pg.Name + `" SET `
	pg.Exec(t, of+`statement_timeout = '600ms'; `+of+`lock_timeout = '500ms'`)
	limit := func() (limit string) {
		if err := db.Pool().QueryRow(t.Context(), `SHOW statement_timeout`).Scan(&limit); err != nil {
			t.Fatal(err)
		}
		return limit
	}
	same(t, limit(), "600ms")
	writer := pgxConnect(t, pg.URL)
	defer func() { _ = writer.Close(context.WithoutCancel(t.Context())) }()
	exec := func(sql string) {
		if _, err := writer.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`SET statement_timeout = 0; BEGIN; LOCK TABLE decision_logs_p20240614 IN ROW EXCLUSIVE MODE`) // the index waits for it
	ended := make(chan error, 1)
	go func() {
		_, err := writer.Exec(t.Context(), `DO $$ BEGIN
			WHILE NOT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'virtualxid' AND NOT granted AND query_start < clock_timestamp() - interval '1 second')
			      AND clock_timestamp() < now() + interval '20 seconds' LOOP
				PERFORM pg_sleep(0.01);
			END LOOP;
		END $$; COMMIT`)
		ended <- err
	}()
	n, err := historydb.NewReader(db.DB).Index(t.Context())
	if err != nil || n != 20 {
		t.Errorf("%d made, %v", n, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	same(t, limit(), "600ms")
}

func TestIndex_WithoutOwnership(t *testing.T) {
	t.Parallel()
	pg := daysOver(t, 100, "")
	db := open(t, pg.Role(t, "SELECT, INSERT"), 20*time.Second)
	if n, err := historydb.NewReader(db.DB).Index(t.Context()); err != nil || n != 0 {
		t.Errorf("%d made, %v", n, err)
	}
}

// touches runs do with a pool of its own. It says how often each index of the table was scanned meanwhile, and how many blocks of the table's
// heap were read.
func touches(t testing.TB, pg *pgtest.DB, do func(*historydb.Reader)) (scans map[string]int64, blocks int64) {
	t.Helper()
	conn := pgxConnect(t, pg.URL)
	defer func() { _ = conn.Close(t.Context()) }()
	read := func() (map[string]int64, int64) {
		scans := map[string]int64{}
		rows, err := conn.Query(t.Context(), `SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE relname LIKE 'decision\_logs\_p%' AND idx_scan > 0`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var n int64
			if err := rows.Scan(&name, &n); err != nil {
				t.Fatal(err)
			}
			scans[name] = n
		}
		var blocks int64
		if err := conn.QueryRow(t.Context(), `SELECT sum(heap_blks_read + heap_blks_hit)::int8 FROM pg_statio_user_tables WHERE relname LIKE 'decision\_logs\_p%'`).Scan(&blocks); err != nil {
			t.Fatal(err)
		}
		return scans, blocks
	}
	quiet := func() { // a session tells what it did when it ends
		pg.EndSessions()
		for others := 1; others > 0; {
			if err := conn.QueryRow(t.Context(), `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND backend_type IN ('client backend', 'autovacuum worker') AND pid <> pg_backend_pid()`).Scan(&others); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Blocks that a vacuum reads would count.
	pg.Exec(t, `DO $$ DECLARE part regclass; BEGIN
		FOR part IN SELECT oid FROM pg_class WHERE relname LIKE 'decision\_logs\_p%' AND relkind = 'r' LOOP EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', part); END LOOP;
	END $$`)
	quiet()
	before, blocksBefore := read()
	db, err := store.Open(db.Config{URL: pg.URL, StoreTimeout: 20 * time.Second}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	do(historydb.NewReader(db.DB))
	db.Close()
	quiet()
	scans, blocks = read()
	for name, n := range before {
		if scans[name] -= n; scans[name] == 0 {
			delete(scans, name)
		}
	}
	return scans, blocks - blocksBefore
}

// through are the kinds of indexes that were gone through.
func through(scans map[string]int64) (kinds []string) {
	for name := range scans {
		_, kind, _ := strings.Cut(strings.TrimPrefix(name, "decision_logs_p"), "_")
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func ids(decisions []reader.Decision) (all []string) {
	for _, d := range decisions {
		all = append(all, d.ID)
	}
	return all
}

func search(t testing.TB, store *historydb.Reader, f reader.Filter, p reader.Page) []string {
	t.Helper()
	found, err := store.Search(t.Context(), f, p)
	if err != nil {
		t.Fatal(err)
	}
	return ids(found.Decisions)
}

func index(store *historydb.Reader, t testing.TB) {
	t.Helper()
	if _, err := store.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSearch_HostOnAPath(t *testing.T) {
	t.Parallel()
	pg := daysOver(t, 4000, "")
	touches(t, pg, func(store *historydb.Reader) { index(store, t) })
	pg.Exec(t, `ANALYZE decision_logs`)
	f := reader.Filter{Paths: []string{"often/a/allow"}, RequestedBy: []string{"10.0.0.2"}}
	end := time.Date(2024, 6, 15, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		since, until time.Time
		oldest       bool
		want         string
	}{
		{until: end, want: "14-2004 14-4 13-2004"}, {since: end.AddDate(0, 0, -4), oldest: true, want: "11-4 11-2004 12-4"},
		{since: end.Add(-24 * time.Hour), until: end, want: "14-2004 14-4"}, {since: end.Add(-36 * time.Hour), until: end, oldest: true, want: "13-2004 14-4 14-2004"},
	} {
		f.Since, f.Until = c.since, c.until
		scans, blocks := touches(t, pg, func(store *historydb.Reader) {
			same(t, strings.Join(search(t, store, f, reader.Page{Limit: 3, Oldest: c.oldest}), " "), c.want)
		})
		if kinds := through(scans); !slices.Equal(kinds, []string{"host_path_ts", "pkey"}) || blocks > 16 {
			t.Errorf("%+v: %d blocks of the table, through %v", c, blocks, scans)
		}
	}
	// A verdict that few have is found by its index, in all days at once.
	for n, rest := range []string{`"error": {"code": "x"}`, `"error": null`, `"result": {"n": 1}`} {
		pg.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
			SELECT %d || '-' || d, '2024-06-11 12:00Z'::timestamptz + d * interval '1 day', '{%s}', 't', 1, d, 0 FROM generate_series(0, 3) d`, n, rest))
	}
	pg.Exec(t, `ANALYZE decision_logs`)
	for _, c := range []struct {
		verdicts []reader.Verdict
		want     string
	}{{[]reader.Verdict{reader.Error}, "0-3 0-2 0-1 0-0"}, {[]reader.Verdict{reader.Error, reader.Undefined, reader.Other}, "2-3 1-3 0-3 2-2 1-2 0-2 2-1 1-1 0-1 2-0 1-0 0-0"}} {
		f := reader.Filter{Verdicts: c.verdicts, Until: end}
		scans, blocks := touches(t, pg, func(store *historydb.Reader) {
			same(t, strings.Join(search(t, store, f, reader.Page{Limit: 50}), " "), c.want)
		})
		if kinds := through(scans); !slices.Equal(kinds, []string{"pkey", "verdict_ts"}) || blocks > 60 {
			t.Errorf("%v: %d blocks of the table, through %v", c.verdicts, blocks, scans)
		}
	}
}

func TestFollow_ReadsNothingOfPastDays(t *testing.T) {
	t.Parallel()
	pg := daysOver(t, 3000, "WITH (fillfactor = 10)") // as long as a day of more
	touches(t, pg, func(store *historydb.Reader) { index(store, t) })
	pg.Exec(t, `ANALYZE decision_logs`)
	scans, blocks := touches(t, pg, func(store *historydb.Reader) {
		var tail reader.Tail
		for range 3 {
			_, next, err := store.Follow(t.Context(), reader.Filter{}, tail, 10, false)
			if err != nil {
				t.Fatal(err)
			}
			tail = next
		}
	})
	for name, n := range scans {
		if strings.Contains(name, "_p202406") && !strings.HasSuffix(name, "_stored_brin") {
			t.Errorf("%s was gone through %d times", name, n)
		}
	}
	if blocks != 0 {
		t.Errorf("%d blocks of the table were read, through %v", blocks, scans)
	}
	// A decision that comes late to one of them is told all the same.
	db := historydb.NewReader(open(t, pg.URL, 20*time.Second).DB)
	_, tail, err := db.Follow(t.Context(), reader.Filter{}, reader.Tail{}, 10, false)
	if err != nil {
		t.Fatal(err)
	}
	later(t, pg, "late", 3)
	told, _, err := db.Follow(t.Context(), reader.Filter{}, tail, 10, false)
	if err != nil {
		t.Fatal(err)
	}
	same(t, ids(told), []string{"late-1", "late-2", "late-3"})
}
