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

// TestForgotten_OnlyOfThatDay: decisions of a forgotten day that nothing has are not lost; others are.
func TestForgotten_OnlyOfThatDay(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	place := func(offset int64) verify.Place { return verify.Place{Topic: "logs", Offset: offset} }
	lacks := []*verify.Decision{
		{Place: place(0), ID: "a", Time: noon}, {Place: place(1), ID: "found", Time: noon}, {Place: place(2), ID: "a", Time: noon.AddDate(0, 0, 1)},
	}
	found := []reader.Decision{{Row: reader.Row{ID: "found", Time: noon}}}
	if of := forgotten(lacks, found, map[archive.Day]bool{archive.DayOf(noon): true}); !slices.Equal(of, []verify.Place{place(0)}) {
		t.Errorf("forgotten: %v", of)
	}
}
