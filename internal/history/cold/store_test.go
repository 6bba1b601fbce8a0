package cold_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	first = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	now   = time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
)

func days(shelf archive.Shelf, change ...func(*cold.Config)) *cold.Days {
	c := cold.Config{
		Where: "the shelf", Table: archivetest.Table, LineBytes: 1 << 20, Now: func() time.Time { return now }, Patience: time.Minute,
		Shelf: func() (archive.Shelf, error) { return shelf, nil },
	}
	for _, f := range change {
		f(&c)
	}
	if c.Format == nil {
		formats := cold.Formats()
		c.Format = func(shelf archive.Shelf, m *archive.Manifest, mostLine int64) cold.Archive {
			if m.Format == archive.FormatParquet && time.Now().Year() == 2000 {
				panic("Parquet is read in a bubble of synctest: pools keep its decoders with their channels, and a test outside of the bubble that gets one fails")
			}
			return formats(shelf, m, mostLine)
		}
	}
	return cold.New(c)
}

// made is a decision of the sample at a second of all days.
func made(i, second int) reader.Decision {
	d := readertest.Decision(i, first.Add(time.Duration(second)*time.Hour))
	d.Time = d.Time.Truncate(time.Microsecond)
	return d
}

// world is a table and its archives, and what a search of both has to find.
type world struct {
	table *readertest.Store
	shelf archive.Shelf
	all   []reader.Decision // by identity
}

// drawn is a world where decisions are in the table, in one archive, in several, or in both.
func drawn(t *rapid.T, shelf archive.Shelf) world {
	w := world{table: &readertest.Store{Part: rapid.IntRange(0, 7).Draw(t, "part")}, shelf: shelf}
	have := map[reader.Spot]reader.Decision{}
	byDay := map[archive.Day][2][]reader.Decision{}
	n := rapid.IntRange(1, 16).Draw(t, "decisions")
	for i := range n {
		d := made(i, rapid.IntRange(0, 24*3).Draw(t, "hour"))
		if rapid.IntRange(0, 3).Draw(t, "same id") == 0 {
			d.ID = "twin"
		}
		if _, twice := have[reader.SpotOf(d)]; twice {
			continue
		}
		other := d
		other.Raw = bytes.Replace(bytes.Clone(d.Raw), []byte(`"input":{`), []byte(`"input":{"late":1,`), 1)
		of := archive.DayOf(d.Time)
		sets := byDay[of]
		switch rapid.IntRange(0, 5).Draw(t, "place") {
		case 0: // never archived
			w.table.Add(d)
		case 1: // archived and dropped
			sets[0] = append(sets[0], d)
		case 2: // archived and kept, or restored
			sets[0] = append(sets[0], d)
			w.table.Add(d)
		case 3: // dropped, delivered again with another payload, archived again
			sets[0], sets[1], d = append(sets[0], d), append(sets[1], other), other
		case 4: // dropped, and delivered again with another payload
			sets[0], d = append(sets[0], d), other
			w.table.Add(d)
		default: // late, only in the second generation
			sets[1] = append(sets[1], d)
		}
		byDay[of] = sets
		have[reader.SpotOf(d)] = d
	}
	for _, sets := range byDay {
		for _, set := range sets {
			if len(set) == 0 {
				continue
			}
			if _, err := archivetest.Write(t.Context(), shelf, rapid.SampledFrom([]int64{4, -4}).Draw(t, "rows of a file"), set...); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.all = slices.Collect(maps.Values(have))
	return w
}

func filters(t *rapid.T) reader.Filter {
	var f reader.Filter
	if rapid.Bool().Draw(t, "ranged") {
		f.Since = first.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "since")) * time.Hour)
		f.Until = f.Since.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "long")) * time.Hour)
	}
	switch rapid.IntRange(0, 6).Draw(t, "filter") {
	case 0:
		f.Verdicts = []reader.Verdict{reader.Denied, reader.Other}
	case 1:
		f.Paths = []string{"http/*", "x"}
	case 2:
		f.RequestedBy = []string{"10.0.0.1"}
	case 3:
		f.Labels = map[string]string{"app": "checkout"}
	case 4:
		f.Matches = []reader.Match{{In: "input", Pointer: "/late", Value: json.RawMessage("1.0")}}
	}
	return f
}

// TestSearch_PagesCrossTheBorder: the pages of table and archives together are one list without doubles or holes.
func TestSearch_PagesCrossTheBorder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := drawn(rt, archive.Dir(t.TempDir()))
		store := cold.Store{Table: w.table, Days: days(w.shelf, func(c *cold.Config) { c.Parallel = rapid.IntRange(1, 3).Draw(rt, "parallel") })}
		f, oldest := filters(rt), rapid.Bool().Draw(rt, "oldest")
		var want []string
		for _, d := range sorted(w.all, oldest) {
			if readertest.Fits(f, d) {
				want = append(want, text(d))
			}
		}
		var got []string
		p := reader.Page{Oldest: oldest, Payload: true}
		for page := 0; ; page++ {
			p.Limit = rapid.IntRange(2, 9).Draw(rt, "limit")
			found, err := store.Search(t.Context(), f, p)
			if err != nil || len(found.NotLooked) > 0 || len(found.Decisions) > p.Limit {
				rt.Fatalf("%v, %v, %d of %d", err, found.NotLooked, len(found.Decisions), p.Limit)
			}
			for _, d := range found.Decisions {
				got = append(got, text(d))
			}
			if found.Next == "" {
				break
			}
			if page > 500 {
				rt.Fatal("there is no end")
			}
			p.After = found.Next
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("found\n%q, want\n%q", got, want)
		}
	})
}

func sorted(all []reader.Decision, oldest bool) []reader.Decision {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b reader.Decision) int {
		if order := reader.SpotOf(a).Compare(reader.SpotOf(b)); oldest {
			return order
		} else {
			return -order
		}
	})
	return all
}

func text(d reader.Decision) string {
	return fmt.Sprintf("%s %s %s", d.Time.Format(time.RFC3339Nano), d.ID, d.Raw)
}

// TestFind_EachIdentityOnce: of several generations the latest counts, and all days are looked into.
func TestFind_EachIdentityOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := drawn(rt, archive.Dir(t.TempDir()))
		found := days(w.shelf).Find(t.Context(), []string{"twin", "absent"})
		if len(found.Gaps) > 0 {
			rt.Fatal(found.Gaps)
		}
		rows, err := w.table.ByID(t.Context(), "twin")
		if err != nil {
			rt.Fatal(err)
		}
		inTable := map[reader.Spot]bool{}
		for _, d := range rows {
			inTable[reader.SpotOf(d)] = true
		}
		var got, want []string
		for _, d := range found.Decisions {
			if !inTable[reader.SpotOf(d)] {
				got = append(got, text(d))
			}
		}
		for _, d := range sorted(w.all, true) {
			if d.ID == "twin" && !inTable[reader.SpotOf(d)] {
				want = append(want, text(d))
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("found\n%q, want\n%q", got, want)
		}
	})
}

// TestRow_AsInTheTable: an archived decision has all that a row has.
func TestRow_AsInTheTable(t *testing.T) {
	t.Parallel()
	for _, rows := range []int64{4, -4} {
		asInTheTable(t, archive.Dir(t.TempDir()), rows)
	}
}

func asInTheTable(t *testing.T, shelf archive.Shelf, rows int64) {
	t.Helper()
	var all []reader.Decision
	for i := range 10 {
		d := made(i, i)
		d.Unfaithful = [][]string{nil, {""}, {"/a,b", `/"q"\`, "/{}"}}[i%3]
		if i%2 == 0 {
			id, by := int64(i), "collector-1"
			d.EditedAuditID, d.UploadedBy = &id, &by
		}
		all = append(all, d)
	}
	m, err := archivetest.Write(t.Context(), shelf, rows, all...)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range all {
		found := days(shelf).Find(t.Context(), []string{d.ID})
		if len(found.Gaps) > 0 || len(found.Decisions) != 1 {
			t.Fatalf("%d found, %v", len(found.Decisions), found.Gaps)
		}
		got := found.Decisions[0]
		if want := (reader.ArchivedIn{Day: "2026-08-01", Archive: m.Name(), File: m.Files[i/4].Name}); got.Archived == nil || *got.Archived != want {
			t.Errorf("it is in %+v, want %+v", got.Archived, want)
		}
		got.Archived = nil
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(d)
		if !bytes.Equal(a, b) {
			t.Errorf("it came back as\n%s, want\n%s", a, b)
		}
	}
}

var _ cold.Table = (*readertest.Store)(nil)

func search(t *testing.T, s cold.Store, f reader.Filter, p reader.Page) reader.Found {
	t.Helper()
	found, err := s.Search(t.Context(), f, p)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// stopping is a shelf on which some files cannot be read, or only slowly.
type stopping struct {
	archive.Shelf
	get func(ctx context.Context, name string) error
}

// TestSearch_PayloadOnlyOnRequest: an archived decision shows its payload as rarely as a row.
func TestSearch_PayloadOnlyOnRequest(t *testing.T) {
	t.Parallel()
	for _, rows := range []int64{4, -4} {
		shelf := archive.Dir(t.TempDir())
		if _, err := archivetest.Write(t.Context(), shelf, rows, made(1, 1), made(2, 2)); err != nil {
			t.Fatal(err)
		}
		store := cold.Store{Table: &readertest.Store{}, Days: days(shelf)}
		for _, payload := range []bool{false, true, false} {
			found := search(t, store, reader.Filter{}, reader.Page{Limit: 10, Payload: payload})
			if len(found.Decisions) != 2 || (found.Decisions[0].Raw != nil) != payload {
				t.Errorf("%d rows of a file, payload %v: %s", rows, payload, found.Decisions[0].Raw)
			}
		}
	}
}

// TestSearch_OnlyTheFormThatCounts: a decision that an archive has in an old form does not fit by that form.
func TestSearch_OnlyTheFormThatCounts(t *testing.T) {
	t.Parallel()
	was, is := "was/allow", "is/allow"
	old, late := made(1, 1), made(1, 1)
	old.Path, late.Path = &was, &is
	for name, inTable := range map[string]bool{"the table has another": true, "a later archive has another": false} {
		shelf, table := archive.Dir(t.TempDir()), &readertest.Store{}
		_, err := archivetest.Write(t.Context(), shelf, 0, old)
		if inTable {
			table.Add(late)
		} else if err == nil {
			_, err = archivetest.Write(t.Context(), shelf, 0, late)
		}
		if err != nil {
			t.Fatal(err)
		}
		store := cold.Store{Table: table, Days: days(shelf)}
		for path, want := range map[string]int{was: 0, is: 1} {
			if found := search(t, store, reader.Filter{Paths: []string{path}}, reader.Page{Limit: 10}); len(found.Decisions) != want {
				t.Errorf("%s: %s has %d decisions, want %d", name, path, len(found.Decisions), want)
			}
		}
	}
}
