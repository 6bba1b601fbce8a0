package lookup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// Nothing in an archive leads to an id by its first characters. So an id that may be shortened is not said to be nowhere.
func TestFind_ShortIDNeedsAWholeOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := readertest.Decision(1, noon.AddDate(0, -2, 0))
	if a := w.look().Find(t.Context(), old.ID[:8]); !a.Complete() {
		t.Errorf("without archives: %v", a.NotLooked)
	}
	if _, err := archivetest.Write(t.Context(), archive.Dir(w.shelf), 2, old); err != nil {
		t.Fatal(err)
	}
	a := w.look().Find(t.Context(), old.ID[:8])
	if !a.Nowhere() || len(a.NotLooked) != 1 || !strings.HasPrefix(a.NotLooked[0].Name, "archived days in ") || !strings.Contains(a.NotLooked[0].Why, "give the whole id") {
		t.Errorf("shortened: %v", a.NotLooked)
	}
	if a := w.look().Find(t.Context(), old.ID); !a.Complete() || len(a.Archived) != 1 {
		t.Errorf("whole: %v", a.NotLooked)
	}
	if a := w.look().Find(t.Context(), "3f0d5f2c-7f8c-4c4e-8f4e-3a2b1c0d9e8f"); !a.Complete() || !a.Nowhere() {
		t.Errorf("an UUID: %v", a.NotLooked)
	}
	w.rows = []reader.Decision{{Row: reader.Row{ID: "number-7", Time: noon}}}
	if a := w.look().Find(t.Context(), "number-7"); !a.Complete() {
		t.Errorf("one that has a row: %v", a.NotLooked)
	}
}

// Where nothing ever was archived, an answer without DOCKET_ARCHIVE_TO has no gap.
func TestFind_NothingWasArchived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shelf = ""
	for name, c := range map[string]struct {
		maybe bool
		err   error
		gap   string
	}{
		"never":   {},
		"maybe":   {true, nil, "DOCKET_ARCHIVE_TO is not set, and days or dead letters may have been archived"},
		"unknown": {false, errors.New("away"), "DOCKET_ARCHIVE_TO is not set"},
	} {
		l := w.look()
		l.Archived = func(context.Context) (bool, error) { return c.maybe, c.err }
		a := l.Find(t.Context(), "d-1")
		if got := strings.Join(Gaps(a.NotLooked), "; "); (c.gap == "") != (got == "") || !strings.Contains(got, c.gap) {
			t.Errorf("%s: not looked at %q", name, got)
		}
		if said := strings.Join(SearchedIn(a.Looked), "; "); strings.Contains(said, "archives: nothing was archived") != (c.gap == "") {
			t.Errorf("%s: looked at %q", name, said)
		}
	}
}

// A part of the table that was not read is a gap of the answer.
func TestFind_PartOfTheTableUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.look()
	l.Rows = func(ctx context.Context, _ string) ([]reader.Decision, error) {
		var parts reader.Parts
		parts.Miss("day 2026-03-04, which is being archived", errors.New("no right"))
		return []reader.Decision{{Row: reader.Row{ID: "d-1", Time: noon}}}, reader.Told(ctx, parts.Err())
	}
	a := l.Find(t.Context(), "d-1")
	if len(a.Rows) != 1 || len(a.NotLooked) != 1 || a.NotLooked[0].String() != "day 2026-03-04, which is being archived: no right" {
		t.Errorf("%d rows, not looked at %v", len(a.Rows), a.NotLooked)
	}
	for _, p := range a.Looked {
		if p.Name == "the rows of decision_logs" {
			t.Error("the table counts as searched")
		}
	}
}

// A day that was forgotten on purpose is told of an id that may have been there alone. The answer is complete without it.
func TestFind_ForgottenDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	day := archive.Left{Day: archive.DayOf(noon.AddDate(0, -2, 0)), Forgotten: &archive.Forgotten{At: noon, By: "mara", Reason: "over"}}
	look := func(forgotten bool) *Look {
		l := w.look()
		left := day
		if !forgotten {
			left.Forgotten = nil
		}
		c := l.Days.Config
		c.Left = func(context.Context) ([]archive.Left, error) { return []archive.Left{left}, nil }
		l.Days = cold.New(c)
		return l
	}
	if a := look(false).Find(t.Context(), "d-1"); a.Complete() || a.Forgets() || !a.Nowhere() {
		t.Errorf("missing: %v", a.NotLooked)
	}
	for name, l := range map[string]*Look{"one table": look(true), "a shard": {Shards: []ShardLook{{"a", look(true)}}}} {
		a := l.Find(t.Context(), "d-1")
		if !a.Complete() || !a.Forgets() || !a.Nowhere() || len(a.NotLooked) != 1 || !strings.Contains(a.NotLooked[0].Why, "forgotten on purpose by mara") {
			t.Errorf("%s: %v", name, a.NotLooked)
		}
	}
	w.rows = []reader.Decision{{Row: reader.Row{ID: "d-1", Time: noon}}}
	if a := look(true).Find(t.Context(), "d-1"); !a.Complete() || len(a.NotLooked) != 0 {
		t.Errorf("stored: %v", a.NotLooked)
	}
}
