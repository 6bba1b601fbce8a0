package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/complete"
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

// rangeBooks has a dead letter in each minute before noon.
type rangeBooks struct{}

func (rangeBooks) Waiting(_ context.Context, r complete.Range) (n int64, known, primary bool, err error) {
	until := r.Until
	if until.IsZero() {
		until = noon
	}
	return int64(until.Sub(r.Since).Minutes()), true, true, nil
}

// TestStats_CompleteInTheirRange: the counts of what waits are of the range that the lines are of.
func TestStats_CompleteInTheirRange(t *testing.T) {
	t.Parallel()
	begun := completed(t, &completetest.Log{}, completetest.Books{})
	for name, left := range map[string]bool{"all in the table": false, "days left": true} {
		w := newWorld(t, begun, func(_ *api.Config, p *api.Ports) {
			if p.Complete.Books = (rangeBooks{}); left {
				p.Decisions = leftStore{p.Decisions}
			}
		})
		for query, step := range map[string]string{"": "5m", "&step=5m": "5m", "&step=1h": "1h"} {
			if left && query == "" {
				step = "1h"
			}
			want := map[string]int64{"5m": 30, "1h": 60}[step]
			var r api.Rates
			w.ask(t, "viewer", http.MethodGet, "/decisions/stats?since=2026-03-01T11:31:00Z&until=2026-03-01T11:59:00Z"+query, "").into(t, &r)
			if left && query == "&step=5m" && r.DeadLettered == nil {
				continue // it lacks a part
			}
			if r.DeadLettered == nil || *r.DeadLettered != want || r.Until == nil || r.Until.Sub(r.Since) != time.Duration(want)*time.Minute {
				t.Errorf("%s, %q: want %d dead letters: %+v", name, query, want, r)
			}
		}
	}
}
