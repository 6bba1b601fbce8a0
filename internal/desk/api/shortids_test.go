package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/testkit/readertest"
)

func TestShortIDs_OfDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"", "/why"} {
		if a := w.ask(t, "auditor", "GET", "/decisions/"+decisionID[:6]+path, ""); a.code != http.StatusOK || !strings.Contains(a.body, decisionID) {
			t.Errorf("%d %s", a.code, a.body)
		}
	}
	d := readertest.Decisions(1, noon)[0]
	d.ID = decisionID[:7] + "x"
	w.store.Add(d)
	for _, path := range []string{"/" + decisionID[:7], "/" + decisionID[:7] + "/why", "/diff?a=" + decisionID + "&b=" + decisionID[:7]} {
		if p := w.ask(t, "auditor", "GET", "/decisions"+path, "").problem(t); p.Status != http.StatusConflict || !strings.Contains(p.Hint, "more characters") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	w.store.FailBegins(reader.ErrWhole)
	if p := w.ask(t, "auditor", "GET", "/decisions/"+decisionID[:6], "").problem(t); p.Status != http.StatusNotFound || p.Hint != "give the whole id" {
		t.Errorf("%+v", p)
	}
}

// TestShortIDs_WholeElsewhere: an id that only another home has is not taken for the beginning of longer ones, nor if there was no time to
// find these. A UUID is whole, so that the first characters of one are a shortened id.
func TestShortIDs_WholeElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, claims := range []string{"order-1", "order-2", decisionID[:8]} {
		w.book.letters[id(n+1)].DecisionID = claims
	}
	for i, decision := range []string{"order-10", "order-20", "order-21"} {
		d := readertest.Decisions(3, noon)[i]
		d.ID = decision
		w.store.Add(d)
	}
	elsewhere := func(whole string) {
		t.Helper()
		for _, path := range []string{"", "/why"} {
			if p := w.ask(t, "auditor", "GET", "/decisions/"+whole+path, "").problem(t); p.Status != http.StatusNotFound || p.Elsewhere == nil || len(p.Elsewhere.Others) != 1 {
				t.Errorf("%s%s: %+v", whole, path, p)
			}
		}
	}
	elsewhere("order-1") // of one longer id
	elsewhere("order-2") // of several
	if a := w.ask(t, "auditor", "GET", "/decisions/"+decisionID[:8], ""); a.code != http.StatusOK || !strings.Contains(a.body, decisionID) {
		t.Errorf("%d %s", a.code, a.body)
	}
	w.store.FailBegins(reader.ErrWhole)
	elsewhere("order-1")
}

// TestShortIDs_PerhapsWhole: where a place cannot be asked, the answer is about a longer id, and says what is not known.
func TestShortIDs_PerhapsWhole(t *testing.T) {
	t.Parallel()
	gaps := []lookup.Gap{{Name: "archives", Why: "away"}}
	w := newWorld(t, func(_ *api.Config, p *api.Ports) {
		p.Elsewhere = func(_ context.Context, id string) (lookup.Answer, error) {
			return lookup.Answer{ID: id, NotLooked: gaps}, nil
		}
	})
	d := readertest.Decisions(1, noon)[0]
	d.ID = "order-10"
	w.store.Add(d)
	for path, times := range map[string]int{
		"/order-1": 1, "/order-1/why": 1, "/order-1/why?elsewhere=false": 1, "/diff?a=order-1&b=order-10": 1, "/diff?a=order-1&b=order-": 2,
		"/order-10": 0, "/order-10/why": 0, "/diff?a=order-10&b=order-10": 0,
	} {
		a := w.ask(t, "auditor", "GET", "/decisions"+path, "")
		if a.code != http.StatusOK || !strings.Contains(a.body, `"decision_id":"order-10"`) || strings.Count(a.body, `"exact_not_looked":["`+gaps[0].String()+`"]`) != times {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	gaps[0].Far = true // no command looks there
	if a := w.ask(t, "auditor", "GET", "/decisions/order-1", ""); strings.Contains(a.body, "exact_not_looked") {
		t.Error(a.body)
	}
}
