package console_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/history/reader"
)

// uncounted is a store whose counts lack days.
type uncounted struct{ placed }

func (u uncounted) Stats(ctx context.Context, _ reader.StatsQuery) ([]reader.Stats, error) {
	return nil, reader.Told(ctx, &reader.PartialError{Missed: []reader.Missed{{Place: "days that left", Err: errors.New("this login may not read them")}}})
}

// TestRates_SayWhatTheyLack: a page without bars does not say that there are no decisions, and the bars of a list say what they lack.
func TestRates_SayWhatTheyLack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Decisions = uncounted{p.Decisions.(placed)} })
	const lack = "Not looked at: days that left: this login may not read them"
	a := w.as(t, "viewer").get(t, "/rates?since=2h")
	if !strings.Contains(a.body, lack) || !strings.Contains(a.body, "No decision was counted") || strings.Contains(a.body, "No decisions in this range") {
		t.Errorf("the page of rates: %s", a.body)
	}
	if a = w.as(t, "viewer").get(t, "/decisions?since=2h"); strings.Count(a.body, "The bars lack a part. "+lack) != 1 {
		t.Errorf("the list: %s", a.body)
	}
}
