//go:build integration

package historydb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
)

// TestRestore_CountsADayFromElsewhere: its rows are older than the mark, and nobody counted them here.
func TestRestore_CountsADayFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, few := range []bool{false, true} {
		t.Run(map[bool]string{false: "all names", true: "few names"}[few], func(t *testing.T) {
			t.Parallel()
			countedOnceRestored(t, few)
		})
	}
}

func countedOnceRestored(t *testing.T, few bool) {
	t.Helper()
	w, drill := newTallied(t, 10), newTallied(t, 11)
	if few {
		w.fewNames()
		drill.fewNames()
	}
	w.settle()
	w.all = append(w.all, w.rowsOf(w.other, 60)...)
	w.archive(true)
	for _, r := range w.all {
		if archive.DayOf(r.ts) == w.day {
			drill.all = append(drill.all, r)
		}
	}
	drill.settle()
	w.Exec(t, `SELECT`)
	drill.count(0) // the mark is past what comes
	drill.c.Shelf, drill.c.Table = w.c.Shelf, historydb.NewArchives(drill.pg.DB).Hurry(true, 0)
	for range 2 { // and once again, which finds nothing to do
		drill.restore()
		drill.exact(historydb.NewReader(drill.pg.DB), true)
	}
}

// TestRestore_WaitsForTheMark: rows that were counted as they were taken out would be counted again.
func TestRestore_WaitsForTheMark(t *testing.T) {
	t.Parallel()
	w := newTallied(t, 12)
	w.settle()
	w.count(0)
	w.all = append(w.all, w.rowsOf(w.other, 60)...)
	var pid int32
	tx, err := w.writer.Begin(t.Context())
	check(t, err)
	check(t, tx.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	w.archive(false)
	w.exact(historydb.NewReader(w.pg.DB), false)
	uncounted := (*archive.UncountedError)(nil)
	if _, err := w.c.Restore(t.Context(), w.day); !errors.As(err, &uncounted) || uncounted.Hint() == "" {
		t.Fatalf("restored within two minutes: %v", err)
	}
	w.exact(historydb.NewReader(w.pg.DB), false)
	w.c.Table = historydb.NewArchives(w.pg.DB).Hurry(true, 0)
	if _, err := w.c.Restore(t.Context(), w.day); !errors.As(err, &uncounted) || !strings.Contains(uncounted.Hint(), fmt.Sprintf("session %d", pid)) {
		t.Fatalf("while a transaction holds the mark back: %v", err)
	}
	w.exact(historydb.NewReader(w.pg.DB), false)
	check(t, tx.Rollback(t.Context()))
	w.restore()
	w.exact(historydb.NewReader(w.pg.DB), false)
	w.count(0)
	w.exact(historydb.NewReader(w.pg.DB), false)
}

// TestArchive_OneSlowCount: on a busy server one count takes longer than writers may wait, and the next does not.
func TestArchive_OneSlowCount(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 900)
	a.Exec(t, `CREATE SEQUENCE slow;
		CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass('decision_logs_p20260304')) AND nextval('slow') = 1 THEN
				PERFORM pg_sleep(3600);
			END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER slow AFTER INSERT ON decision_counts FOR EACH STATEMENT EXECUTE FUNCTION slow()`)
	tx, err := pgxConnect(t, a.URL).Begin(t.Context()) // holds the mark back, so that all rows are to be counted
	check(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	a.c.Table = historydb.NewArchives(open(t, a.URL, 0).DB).CountTo().Within(5 * time.Second)
	if done := a.archive(false); !done.Dropped || done.Rows != 900 {
		t.Errorf("%+v", done)
	}
	var tries, counted int64
	a.Query(t, `SELECT (SELECT last_value FROM slow), (SELECT sum(allowed + denied + undefined + error + other) FROM decision_counts)`, &tries, &counted)
	if tries < 2 || counted != 900 {
		t.Errorf("%d rows counted with %d tries", counted, tries)
	}
}

// TestArchive_WritersDoNotWaitForLong: with a mark that is held back there may be much to count while they do.
func TestArchive_WritersDoNotWaitForLong(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 12_000) // of 7 seconds each: the day has no more
	pg := open(t, a.URL, 20*time.Second)
	holder := pgxConnect(t, a.URL)
	tx, err := holder.Begin(t.Context())
	check(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	var pid int32
	check(t, tx.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	refused := func(what string) {
		t.Helper()
		_, err := a.c.Archive(t.Context(), a.day, false)
		uncounted := (*archive.UncountedError)(nil)
		if !errors.As(err, &uncounted) || !strings.Contains(uncounted.Hint(), fmt.Sprintf("session %d", pid)) {
			t.Fatalf("%s: %v", what, err)
		}
		var attached, counted int
		a.Query(t, `SELECT (SELECT count(*) FROM pg_inherits WHERE inhrelid = to_regclass('decision_logs_p20260304')), (SELECT count(*) FROM decision_counts)`, &attached, &counted)
		if attached != 1 || counted != 0 {
			t.Errorf("%s: the day is in the table %d times, and there are %d lines of counts", what, attached, counted)
		}
	}
	a.c.Table = historydb.NewArchives(pg.DB).Hurry(true, time.Millisecond)
	refused("counting takes too long")
	a.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
		SELECT 'more' || n, '%s'::timestamptz + n * interval '1 second', '{"result":true}', 't', 0, n, 0 FROM generate_series(1, %d) AS n`, a.day, historydb.LeavingRows))
	a.c.Table = historydb.NewArchives(pg.DB).Hurry(true, 0)
	refused("there is too much to count")
	check(t, tx.Rollback(t.Context()))
	if done := a.archive(false); !done.Dropped || done.Rows != int64(12_000+historydb.LeavingRows) {
		t.Fatalf("%+v", done)
	}
	var hours, days int64
	a.Query(t, `SELECT (SELECT sum(allowed + denied + undefined + error + other) FROM decision_counts), (SELECT sum(allowed + denied + undefined + error + other) FROM decision_counts_days)`, &hours, &days)
	if hours != days || hours != int64(12_000+historydb.LeavingRows) {
		t.Errorf("%d counted by the hour, %d by the day", hours, days)
	}
}
