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
