package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
	"docket/internal/testkit/completetest"
)

// leftStore has days that left the table, which it counts by whole hours alone.
type leftStore struct{ reader.Store }

func (s leftStore) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	if q.Step < time.Hour {
		return nil, reader.Told(ctx, &reader.PartialError{Missed: []reader.Missed{{Place: "days that left", Err: errors.New("by the hour alone")}}})
	}
	return s.Store.Stats(ctx, q)
}

// TestStats_OfDaysThatLeft: without a step they are counted by the hour. With a shorter one the answer says that it lacks them.
func TestStats_OfDaysThatLeft(t *testing.T) {
	t.Parallel()
	l := &completetest.Log{Ends: map[string]int64{completetest.Source: 9}, Done: map[string]int64{completetest.Source: 9}}
	w := newWorld(t, completed(t, l, completetest.Books{}), func(_ *api.Config, p *api.Ports) { p.Decisions = leftStore{p.Decisions} })
	const asked = "/decisions/stats?since=2026-03-01T11:31:00Z&until=2026-03-01T11:59:00Z"
	for query, c := range map[string]struct {
		step    float64
		lines   bool
		partial bool
	}{"": {3600, true, false}, "&step=5m": {300, false, true}, "&step=1h": {3600, true, false}} {
		var r api.Rates
		w.ask(t, "viewer", http.MethodGet, asked+query, "").into(t, &r)
		if r.StepSeconds != c.step || len(r.Lines) > 0 != c.lines || len(r.NotRead) > 0 != c.partial || (r.Freshness == reader.Partial) != c.partial || (r.CompleteUntil == nil) != c.partial {
			t.Errorf("%q: %+v", query, r)
		}
		if c.step == 3600 && (r.Since.Minute() != 0 || r.Until.Minute() != 0) {
			t.Errorf("%q: from %s to %s", query, r.Since, r.Until)
		}
	}
}
