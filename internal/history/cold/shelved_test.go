package cold_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// mark writes the marker of an archive that is not finished.
func mark(t *testing.T, shelf archive.Shelf, name string) {
	t.Helper()
	check(t, shelf.Put(t.Context(), name+".started", strings.NewReader("x")))
}

// TestShelved_Unfinished: archives that are not finished are told by the listing that finds the archived days. Days that have
// such archives alone are among the days, and so are earlier ones than the newest that are asked for.
func TestShelved_Unfinished(t *testing.T) {
	t.Parallel()
	shelf := &overseen{Shelf: archive.Dir(t.TempDir())}
	year(t, shelf, 3) // from 2026-08-01 back
	const second, alone, early, late = "decision_logs-2026-08-01-002-3f9a2c-00000000", "decision_logs-2026-08-05-001-3f9a2c-00000000", "decision_logs-2026-07-30-002-3f9a2c-00000000", "dead_letters-2026-08-05-001-3f9a2c-00000000"
	for _, name := range []string{second, alone, early, late} {
		mark(t, shelf, name)
	}
	shelf.reset()
	all, more, err := days(shelf).Shelved(t.Context(), 2)
	check(t, err)
	type day struct {
		Day        string
		Archives   int
		Unfinished []string
	}
	var got []day
	for _, s := range all {
		got = append(got, day{s.Day.String(), len(s.Archives), s.Unfinished})
		if len(s.Gaps) > 0 {
			t.Errorf("%s: %v", s.Day, s.Gaps)
		}
	}
	if diff := cmp.Diff([]day{{"2026-07-30", 0, []string{early}}, {"2026-07-31", 1, nil}, {"2026-08-01", 1, []string{second}}, {"2026-08-05", 0, []string{alone}}}, got); diff != "" || !more {
		t.Errorf("more: %t, -want +got:\n%s", more, diff)
	}
	if lists, manifests, files := shelf.reset(); lists != 1 || manifests != 2 || len(files) > 0 {
		t.Errorf("%d listings, %d manifests, %v", lists, manifests, files)
	}
}

// TestDays_UnfinishedIsNoDay: to questions, an archive that is not finished is neither an archived day nor a gap. A day that left
// the table and has such an archive alone lacks its archive, as without it.
func TestDays_UnfinishedIsNoDay(t *testing.T) {
	t.Parallel()
	shelf := archive.Dir(t.TempDir())
	there, gone := made(1, 1), made(2, 48)
	_, err := archivetest.Write(t.Context(), shelf, 0, there)
	check(t, err)
	ask := func(left ...archive.Left) []any {
		d := days(shelf, func(c *cold.Config) {
			c.Left = func(context.Context) ([]archive.Left, error) { return left, nil }
		})
		defer d.Close()
		list := search(t, cold.Store{Table: &readertest.Store{}, Days: d}, reader.Filter{}, reader.Page{Limit: 9})
		byID, having := d.Find(t.Context(), []string{there.ID, gone.ID}), d.Having(t.Context(), []reader.Spot{reader.SpotOf(gone)})
		return []any{list.Decisions, list.NotLooked, byID, having}
	}
	left := archive.Left{Day: archive.DayOf(gone.Time)}
	before, lacking := ask(), ask(left)
	if gaps := lacking[3].(cold.Found).Gaps; len(gaps) != 1 {
		t.Errorf("an identity of a day that left: %v", gaps)
	}
	mark(t, shelf, "decision_logs-"+archive.DayOf(there.Time).String()+"-002-3f9a2c-00000000")
	mark(t, shelf, "decision_logs-"+archive.DayOf(gone.Time).String()+"-001-3f9a2c-00000000")
	if diff := cmp.Diff(before, ask()); diff != "" {
		t.Errorf("-without +with markers:\n%s", diff)
	}
	if diff := cmp.Diff(lacking, ask(left)); diff != "" {
		t.Errorf("a day that left: -without +with markers:\n%s", diff)
	}
}
