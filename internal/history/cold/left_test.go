package cold_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// A day that left the table is told where a question needs it and no archive has it. One that was restored is not.
func TestDays_ArchiveMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var decisions []reader.Decision
	var all []archive.Day
	for i := range 5 {
		d := made(i, 24*i)
		decisions, all = append(decisions, d), append(all, archive.DayOf(d.Time))
		if _, err := archivetest.Write(t.Context(), archive.Dir(dir), 0, d); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(i int) {
		files, err := filepath.Glob(filepath.Join(dir, "decision_logs-"+all[i].String()+"*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, name := range files {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := all
	var fault error
	shelf := days(archive.Dir(dir), func(c *cold.Config) {
		c.Left = func(context.Context) ([]archive.Left, error) { return leaving(left...), fault }
	})
	store := cold.Store{Table: &readertest.Store{}, Days: shelf}
	is := func(what string, gaps []reader.Gap, want ...string) {
		t.Helper()
		if got := reader.GapTexts(gaps); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	search := func(f reader.Filter, limit, want int) []reader.Gap {
		t.Helper()
		found, err := store.Search(t.Context(), f, reader.Page{Limit: limit})
		if err != nil || len(found.Decisions) != want {
			t.Errorf("%d decisions, %v", len(found.Decisions), err)
		}
		return found.NotLooked
	}
	having := func(i int) []reader.Gap {
		return shelf.Having(t.Context(), []reader.Spot{reader.SpotOf(decisions[i])}).Gaps
	}
	is("all are there", search(reader.Filter{}, 9, 5))
	is("an id", shelf.Find(t.Context(), []string{"x"}).Gaps)

	remove(1)
	const one = "archived days in the shelf: 2026-08-02 left the table, and no archive has it: it was removed, or is elsewhere"
	is("a search", search(reader.Filter{}, 9, 4), one)
	is("a search of its day", search(reader.Filter{Since: all[1].Time, Until: all[2].Time}, 9, 0), one)
	is("a search of other days", search(reader.Filter{Since: all[2].Time}, 9, 3))
	is("a page that ends before", search(reader.Filter{}, 2, 2))
	is("an id", shelf.Find(t.Context(), []string{decisions[1].ID}).Gaps, one)
	is("its identity", having(1), one)
	is("another identity", having(0))
	if shown, _, err := shelf.Shelved(t.Context(), 9); err != nil || len(shown) != 4 {
		t.Errorf("on the shelf: %d days, %v", len(shown), err)
	}

	remove(4)
	const two = "archived days in the shelf: 2 days from 2026-08-02 to 2026-08-05 left the table, and no archives have them: these were removed, or are elsewhere"
	is("two days", search(reader.Filter{}, 9, 3), two)

	left = slices.Delete(slices.Clone(all), 1, 2)
	is("one was restored", search(reader.Filter{Until: all[4].Time}, 9, 3))

	left, fault = nil, errors.New("no right")
	const unknown = "archived days in the shelf: it is not known whether archives are missing: no right"
	is("not known", search(reader.Filter{}, 9, 3), unknown)
	is("an id, not known", shelf.Find(t.Context(), []string{"x"}).Gaps, unknown)
	is("an identity, not known", having(0), unknown)
}

func leaving(days ...archive.Day) (left []archive.Left) {
	for _, day := range days {
		left = append(left, archive.Left{Day: day})
	}
	return left
}

// A day that was forgotten on purpose is told, and the answer is complete without it. An archive of it that comes back
// counts, and one of decisions that came later does not.
func TestDays_Forgotten(t *testing.T) {
	t.Parallel()
	var decisions []reader.Decision
	for i := range 3 {
		decisions = append(decisions, made(i, 24*i))
	}
	left := make([]archive.Left, len(decisions))
	for i, d := range decisions {
		left[i] = archive.Left{Day: archive.DayOf(d.Time), Forgotten: &archive.Forgotten{At: now, By: "mara", Reason: "100% over"}}
	}
	is := func(what string, shelf archive.Shelf, left []archive.Left, want string, found int, lacks bool) {
		t.Helper()
		d := days(shelf, func(c *cold.Config) {
			c.Left = func(context.Context) ([]archive.Left, error) { return left, nil }
		})
		store := cold.Store{Table: &readertest.Store{}, Days: d}
		list, err := store.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 9})
		if err != nil || len(list.Decisions) != found {
			t.Errorf("%s: %d decisions, %v", what, len(list.Decisions), err)
		}
		byID := d.Find(t.Context(), []string{decisions[0].ID})
		whole := found
		if lacks {
			whole = 0
		}
		if len(byID.Decisions) != min(found, 1) || byID.Days != whole {
			t.Errorf("%s: %d of an id, %d days", what, len(byID.Decisions), byID.Days)
		}
		identity := d.Having(t.Context(), []reader.Spot{reader.SpotOf(decisions[0])})
		if is := left[len(left)-1].Forgotten != nil && found == 0; identity.Forgotten[archive.DayOf(decisions[0].Time)].IsZero() == is {
			t.Errorf("%s: forgotten days of an identity: %v, want it: %t", what, identity.Forgotten, is)
		}
		for _, gaps := range [][]reader.Gap{list.NotLooked, byID.Gaps} {
			if got := strings.Join(reader.GapTexts(gaps), "; "); got != want || reader.Lacking(gaps) != lacks {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
	}
	empty := func() archive.Shelf { return archive.Dir(t.TempDir()) }
	note := "forgotten on purpose by mara at " + now.UTC().Format(time.RFC3339) + ": 100% over"
	const in, day = "archived days in the shelf: ", "2026-08-01"
	is("one", empty(), left[:1], in+day+" was "+note, 0, false)
	is("several", empty(), left, in+"3 days from 2026-08-01 to 2026-08-03 were forgotten on purpose: docket archive days says by whom, and why", 0, false)
	is("and one that is missing", empty(), append(leaving(left[1].Day), left[0]), in+"2026-08-02 left the table, and no archive has it: it was removed, or is elsewhere; "+in+day+" was "+note, 0, true)

	shelf := empty()
	m, err := archivetest.Write(t.Context(), shelf, 0, decisions[0])
	if err != nil {
		t.Fatal(err)
	}
	back, late := left[0], left[0]
	back.Forgotten = &archive.Forgotten{At: m.CreatedAt.Add(time.Second), By: "mara", Reason: "over"}
	late.Forgotten = &archive.Forgotten{At: m.CreatedAt.Add(-time.Second), By: "mara", Reason: "over"}
	is("an archive that came back", shelf, []archive.Left{back}, "", 1, false)
	part, other := back, strings.Replace(m.Name(), "-001-", "-002-", 1)
	part.Forgotten = &archive.Forgotten{At: back.Forgotten.At, By: "mara", Reason: "over", Archives: []string{m.Name(), other}}
	is("one of two archives that came back", shelf, []archive.Left{part}, "archived day 2026-08-01 in the shelf: archive "+other+" has no manifest any more: it was removed, or is elsewhere", 1, true)
	list, err := (&cold.Store{Table: &readertest.Store{}, Days: days(shelf, func(c *cold.Config) {
		c.Left = func(context.Context) ([]archive.Left, error) { return []archive.Left{late}, nil }
	})}).Search(t.Context(), reader.Filter{}, reader.Page{Limit: 9})
	if err != nil || len(list.Decisions) != 1 || len(list.NotLooked) != 1 || !list.NotLooked[0].Forgotten {
		t.Errorf("an archive of late decisions: %d, %v, %v", len(list.Decisions), list.NotLooked, err)
	}
}

// An archive of a day that the database noted and that has no manifest is told, also if others of the day are there. So are
// its files, if those alone are gone.
func TestDays_OneArchiveOfSeveralMissing(t *testing.T) {
	t.Parallel()
	const day, gone = "archived day 2026-08-01 in the shelf: ", " has no manifest any more: it was removed, or is elsewhere"
	for name, c := range map[string]struct {
		remove func(dir string, ms []*archive.Manifest) []string
		want   func(ms []*archive.Manifest) string
		found  int
	}{
		"nothing":   {func(string, []*archive.Manifest) []string { return nil }, func([]*archive.Manifest) string { return "" }, 2},
		"the first": {manifestOf(0), func(ms []*archive.Manifest) string { return day + "archive " + ms[0].Name() + gone }, 1},
		"the last":  {manifestOf(1), func(ms []*archive.Manifest) string { return day + "archive " + ms[1].Name() + gone }, 1},
		"a file": {func(_ string, ms []*archive.Manifest) []string { return []string{ms[0].Files[0].Name} }, func(ms []*archive.Manifest) string {
			return day + "archive " + ms[0].Name() + " is broken: " + ms[0].Files[0].Name + " is missing"
		}, 1},
		"all manifests": {func(_ string, ms []*archive.Manifest) []string {
			return append(manifestOf(0)("", ms), manifestOf(1)("", ms)...)
		}, func([]*archive.Manifest) string {
			return "archived days in the shelf: 2026-08-01 left the table, and no archive has it: it was removed, or is elsewhere"
		}, 0},
	} {
		for format, rows := range map[string]int64{"lines": -10, "parquet": 10} {
			t.Run(name+" of "+format, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				decisions := []reader.Decision{made(1, 1), made(2, 2)}
				left := archive.Left{Day: archive.DayOf(decisions[0].Time)}
				var all []*archive.Manifest
				for _, d := range decisions {
					m, err := archivetest.Write(t.Context(), archive.Dir(dir), rows, d)
					check(t, err)
					all, left.Archives = append(all, m), append(left.Archives, m.Name())
				}
				for _, file := range c.remove(dir, all) {
					check(t, os.Remove(filepath.Join(dir, file)))
				}
				d := days(archive.Dir(dir), func(c *cold.Config) {
					c.Left = func(context.Context) ([]archive.Left, error) { return []archive.Left{left}, nil }
				})
				defer d.Close()
				list := search(t, cold.Store{Table: &readertest.Store{}, Days: d}, reader.Filter{}, reader.Page{Limit: 9})
				byID := d.Find(t.Context(), []string{decisions[0].ID, decisions[1].ID})
				for what, gaps := range map[string][]reader.Gap{"a search": list.NotLooked, "an id": byID.Gaps} {
					if got := strings.Join(reader.GapTexts(gaps), "; "); got != c.want(all) {
						t.Errorf("%s: %q, want %q", what, got, c.want(all))
					}
				}
				if len(list.Decisions) != c.found || len(byID.Decisions) != c.found {
					t.Errorf("%d and %d decisions, want %d", len(list.Decisions), len(byID.Decisions), c.found)
				}
			})
		}
	}
}

func manifestOf(n int) func(string, []*archive.Manifest) []string {
	return func(_ string, ms []*archive.Manifest) []string { return []string{ms[n].Name() + ".manifest.json"} }
}
