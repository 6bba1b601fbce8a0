package complete_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
)

func TestAsked_JoinsFacts(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 21, 20, 15, 0, 0, time.UTC)
	now := func() time.Time { return until.Add(time.Minute) }
	for _, c := range []struct {
		given reader.Freshness
		facts complete.Facts
		want  reader.Freshness
		until bool
	}{
		{reader.Fresh, complete.Facts{Found: true}, reader.Fresh, true},
		{reader.Fresh, complete.Facts{}, reader.NotFound, true},
		{reader.Fresh, complete.Facts{Found: true, Archived: true}, reader.Archived, true},
		{reader.Fresh, complete.Facts{Found: true, Partly: true}, reader.Partial, true},
		{reader.Fresh, complete.Facts{Found: true, RowsLack: true}, reader.Fresh, false},
		{reader.Holding, complete.Facts{}, reader.Holding, true},
		{reader.CatchingUp, complete.Facts{Archived: true}, reader.CatchingUp, true},
		{reader.Partial, complete.Facts{Found: true}, reader.Partial, true},
	} {
		behind := int64(7)
		a := &complete.Answers{Now: now, Asked: func(context.Context, complete.Range) (reader.Completeness, error) {
			return reader.Completeness{Freshness: c.given, CompleteUntil: &until, Behind: &behind}, nil
		}}
		got := a.Begin(t.Context(), complete.Range{}).End(c.facts)
		if got.Freshness != c.want || (got.CompleteUntil != nil) != c.until || got.Behind == nil {
			t.Errorf("%s with %+v: %+v", c.given, c.facts, got)
		}
	}
	fresh := &complete.Answers{Now: now, Asked: func(context.Context, complete.Range) (reader.Completeness, error) {
		return reader.Completeness{Freshness: reader.Fresh, CompleteUntil: &until}, nil
	}}
	if got := fresh.Begin(t.Context(), complete.Range{}).EndStates(complete.Facts{Found: true}, until.Add(-time.Hour)); got.Freshness != reader.CatchingUp || got.CompleteUntil != nil {
		t.Errorf("states of an hour ago: %+v", got)
	}
	away := &complete.Answers{Asked: func(context.Context, complete.Range) (reader.Completeness, error) {
		return reader.Completeness{Freshness: reader.Fresh, CompleteUntil: &until}, errors.New("away")
	}}
	if got := away.Begin(t.Context(), complete.Range{}).End(complete.Facts{Found: true}); got.Freshness != reader.Partial || got.CompleteUntil != nil {
		t.Errorf("without an answer: %+v", got)
	}
}
