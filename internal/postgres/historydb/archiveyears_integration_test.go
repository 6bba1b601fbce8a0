//go:build integration

package historydb_test

import (
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
)

// TestArchive_DecisionOfTheYearZero: Postgres has no text of such a day that it reads again, so its decisions stay in the table, and fail
// no archive.
func TestArchive_DecisionOfTheYearZero(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.rows(1, 5)
	a.Exec(t, `UPDATE decision_logs SET ts = '0001-06-01 00:00:00+00 BC' WHERE decision_id = 'd1'; UPDATE decision_logs SET ts = '0001-01-01 00:00:00+00' WHERE decision_id = 'd2'`)
	days, err := a.c.Table.Days(t.Context(), a.day.Next())
	if err != nil || len(days) != 2 || days[0].Day != (archive.Day{}) || days[1].Day != a.day {
		t.Errorf("%v, %v", days, err)
	}
	for _, h := range days {
		if done, err := a.c.Archive(t.Context(), h.Day, false); err != nil || !done.Dropped {
			t.Errorf("%s: %+v, %v", h.Day, done, err)
		}
	}
	var n int
	if a.Query(t, `SELECT count(*) FROM decision_logs`, &n); n != 1 {
		t.Errorf("%d rows are left", n)
	}
	if _, err := archive.ParseDay("0000-06-01"); err == nil {
		t.Error("the day has an archive")
	}
}

// TestLeaving_FirstDayOfAll: decisions without a time have that of the first day in Go. While that day is archived, they count once.
func TestLeaving_FirstDayOfAll(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.day = archive.Day{}
	a.rows(1, 5)
	r := historydb.NewReader(open(t, a.URL, 0).DB)
	a.c.Told = func(s archive.Step) {
		if s != archive.StepDetached {
			return
		}
		lines, err := r.Stats(t.Context(), reader.StatsQuery{Until: a.day.Next().Time, Step: 24 * time.Hour})
		n := int64(0)
		for _, l := range lines {
			for _, of := range l.Counts {
				n += of
			}
		}
		if err != nil || n != 5 {
			t.Errorf("%d decisions, %v", n, err)
		}
	}
	if done := a.archive(false); !done.Dropped || done.Rows != 5 {
		t.Errorf("%+v", done)
	}
}
