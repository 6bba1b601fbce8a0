package inspect

import (
	"context"
	"slices"
	"testing"
	"time"

	"docket/internal/audit/verify"
	"docket/internal/history/archive"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
)

// TestEverywhere_Forgotten: a place that was given up on purpose is none that was not searched.
func TestEverywhere_Forgotten(t *testing.T) {
	t.Parallel()
	s := &System{elsewhere: func(context.Context, string) (lookup.Answer, error) {
		return lookup.Answer{NotLooked: []lookup.Gap{{Name: "a", Why: "was forgotten on purpose by mara", Forgotten: true}, {Name: "b", Why: "away"}}}, nil
	}}
	var w Whereabouts
	_, _, err := s.everywhere(t.Context(), &w, "d")
	if err != nil || !slices.Equal(w.Forgotten, []string{"a: was forgotten on purpose by mara"}) || !slices.Equal(w.Unlooked, []string{"b: away"}) {
		t.Errorf("%q given up, %q not searched, %v", w.Forgotten, w.Unlooked, err)
	}
}

// TestForgotten_OnlyOfThatDay: decisions of a forgotten day that nothing has are not lost; others are. So is one that came
// after the day was forgotten.
func TestForgotten_OnlyOfThatDay(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	place := func(offset int64) verify.Place { return verify.Place{Topic: "logs", Offset: offset} }
	lacks := []*verify.Decision{
		{Place: place(0), ID: "a", Time: noon}, {Place: place(1), ID: "found", Time: noon}, {Place: place(2), ID: "a", Time: noon.AddDate(0, 0, 1)},
		{Place: place(3), ID: "b", Time: noon, Stamp: noon.AddDate(0, 2, 0)}, {Place: place(4), ID: "c", Time: noon, Stamp: noon.AddDate(0, 2, 1)},
	}
	found := []reader.Decision{{Row: reader.Row{ID: "found", Time: noon}}}
	if of := forgotten(lacks, found, map[archive.Day]time.Time{archive.DayOf(noon): noon.AddDate(0, 2, 0)}); !slices.Equal(of, []verify.Place{place(0), place(3)}) {
		t.Errorf("forgotten: %v", of)
	}
}

// TestGivenUp_ByNotesAlone: without the archives, the notes say which days of the decisions nobody needs any more.
func TestGivenUp_ByNotesAlone(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	day := func(n int) archive.Day { return archive.DayOf(noon.AddDate(0, 0, n)) }
	note := &archive.Forgotten{At: noon.AddDate(0, 2, 0), By: "mara", Reason: "over"}
	left := []archive.Left{
		{Day: day(0), Forgotten: note, Archives: []string{}}, {Day: day(1), Archives: []string{}}, {Day: day(2), Forgotten: note, Archives: []string{"later"}},
		{Day: day(3), Forgotten: note}, {Day: day(4), Forgotten: note},
	}
	spot := func(n int) reader.Spot { return reader.Spot{ID: "d", Time: noon.AddDate(0, 0, n)} }
	for _, c := range []struct {
		of   []reader.Spot
		days []archive.Day
		told []string
	}{
		{[]reader.Spot{spot(0), spot(1), spot(2)}, []archive.Day{day(0)}, []string{"archives: 2026-08-01 was forgotten on purpose by mara at 2026-10-01T12:00:00Z: over"}},
		{[]reader.Spot{spot(0), spot(0), spot(3)}, []archive.Day{day(0), day(3)}, []string{"archives: 2 days were forgotten on purpose: docket archive days says by whom, and why"}},
		{[]reader.Spot{spot(1), spot(9)}, nil, nil},
	} {
		days, told := givenUp(left, c.of)
		if len(days) != len(c.days) || !slices.Equal(reader.GapTexts(told), c.told) || reader.Lacking(told) {
			t.Errorf("%v, %q", days, reader.GapTexts(told))
		}
		for _, d := range c.days {
			if days[d] != note.At {
				t.Errorf("%s is not among %v", d, days)
			}
		}
	}
}
