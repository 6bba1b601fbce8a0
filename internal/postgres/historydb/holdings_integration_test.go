//go:build integration

package historydb_test

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
)

// TestHoldings_OfADayThatLeaves: hot, then at work, then left off, then dropped, and back.
func TestHoldings_OfADayThatLeaves(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.rows(1, 2000)
	a.settle()
	pg, err := store.Open(db.Config{URL: a.URL}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Close)
	rows := historydb.NewReader(pg.DB)
	today := archive.DayOf(time.Now())
	state := func() (archive.DayState, archive.CalendarDay) {
		t.Helper()
		h, err := rows.Holdings(t.Context(), today)
		if err != nil {
			t.Fatal(err)
		}
		var shelved []archive.Shelved
		all, err := archive.Whole(t.Context(), a.c.Shelf, "decision_logs", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			shelved = append(shelved, archive.Shelved{Day: a.day, Archives: []*archive.Manifest{m}})
		}
		for _, d := range archive.CalendarOf(h, shelved, today).Days {
			if d.Day == a.day {
				return d.State, d
			}
		}
		return "", archive.CalendarDay{}
	}
	// The server lets go of a lock a moment after its session was closed. So the state is waited for.
	want := func(want archive.DayState) {
		t.Helper()
		got, d := state()
		for end := time.Now().Add(time.Minute); got != want && time.Now().Before(end); got, d = state() {
			time.Sleep(10 * time.Millisecond)
		}
		if got != want {
			t.Errorf("%q, want %q: %+v", got, want, d)
		}
	}
	want(archive.DayHot)
	s, err := a.c.Table.Open(context.Background(), a.day)
	if err != nil {
		t.Fatal(err)
	}
	want(archive.DayWorking)
	s.Close()
	a.archive(true)
	want(archive.DayBoth)
	a.archive(false)
	want(archive.DayArchived)
	if _, d := state(); d.Archived != 2000 || d.Counted != 2000 || d.Rows != 0 {
		t.Errorf("%+v", d)
	}
	a.restore()
	want(archive.DayBoth)
	a.c.GoOn = nil
	a.Exec(t, `ALTER TABLE decision_logs DETACH PARTITION decision_logs_p20260304; ALTER TABLE decision_logs_p20260304 RENAME TO decision_logs_leaving_20260304`)
	want(archive.DayLeftOff)
	a.Exec(t, `DROP TABLE decision_logs_leaving_20260304`)
	a.c.Shelf = archive.Dir(t.TempDir())
	want(archive.DayDropped)
}
