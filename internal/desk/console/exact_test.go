package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/history/lookup"
	"docket/internal/testkit/readertest"
)

// TestWhy_PerhapsAnotherDecision: a page about a longer id says where the asked one could not be looked for.
func TestWhy_PerhapsAnotherDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) {
		p.Elsewhere = func(_ context.Context, id string) (lookup.Answer, error) {
			a := lookup.Answer{ID: id}
			if id == "order-1" {
				a.NotLooked = []lookup.Gap{{Name: "archives", Why: "away"}}
			}
			return a, nil
		}
	})
	d := readertest.Decisions(1, noon)[0]
	d.ID = "order-10"
	w.store.Add(d)
	for path, role := range map[string]string{"/decisions/order-1": "viewer", "/decisions/order-1?": "auditor", "/compare?a=order-1&b=order-10": "auditor", "/compare?a=order-10&b=order-1": "auditor"} {
		a := w.as(t, role).get(t, path)
		for _, want := range []string{"This is about order-10, the only stored id that begins with order-1. Docket does not know whether another place has a decision order-1.", "Not looked at: archives: away"} {
			if a.code != http.StatusOK || !strings.Contains(a.body, want) {
				t.Errorf("%s: %d, without %q", path, a.code, want)
			}
		}
	}
	if a := w.as(t, "auditor").get(t, "/decisions/order-10"); a.code != http.StatusOK || strings.Contains(a.body, "another place") {
		t.Errorf("the whole id: %d %s", a.code, a.body)
	}
}
