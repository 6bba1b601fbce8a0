package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/state"
	"docket/internal/record/verdict"
	"docket/internal/testkit/readertest"
)

func newStates() *readertest.States {
	at := func(minutes int, id string) state.Version {
		return state.Version{Time: noon.Add(-time.Duration(minutes) * time.Minute), ID: id}
	}
	s := &readertest.States{Mark: state.Mark{StoredBefore: noon.Add(-12 * time.Second), StoredSince: noon.Add(-time.Hour), SubjectsBy: "*=input:/user"}}
	for _, path := range []string{"a/b", "admin/x", "admin/y"} {
		s.All = append(s.All, state.State{
			Key: state.Key{Subject: "alice", Path: path}, Verdict: verdict.Denied, Revision: "main@r2", Hash: state.Hash{0xab}, Since: at(5, "d5"), LastSeen: at(1, "").Time, Decisions: 9, Version: at(1, "d1"),
			Before: &state.Before{Verdict: verdict.Allowed, Version: at(6, "d6")}, Late: 2,
		})
	}
	for i := range 5 {
		s.Noted = append(s.Noted, state.Flip{ID: int64(i + 1), Key: state.Key{Subject: "alice", Path: "admin/x"}, Was: verdict.Allowed, Verdict: verdict.Denied, Version: at(9-i, "f"), WasVersion: at(9, "g"), StoredAt: noon, Late: i == 4})
	}
	return s
}

func TestStates_OfASubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var out api.SubjectStates
	w.ask(t, "auditor", "GET", "/states?subject=alice&limit=2", "").into(t, &out)
	s := out.States[0]
	if len(out.States) != 2 || !out.More || out.SubjectsBy != "*=input:/user" || !out.StoredBefore.Equal(noon.Add(-12*time.Second)) {
		t.Errorf("%+v", out)
	}
	if s.Path != "a/b" || s.Verdict != verdict.Denied || s.SinceID != "d5" || s.Decisions != 9 || s.VersionID != "d1" || s.Before.DecisionID != "d6" || s.Late != 2 || !strings.HasPrefix(s.Hash, "ab00") {
		t.Errorf("%+v", s)
	}
	if log := w.log.String(); !strings.Contains(log, `"operator":"aude","operation":"show-states"`) || strings.Contains(log, "alice") {
		t.Errorf("the log does not say who looked, or says at whom: %s", log)
	}
	var none api.SubjectStates
	w.ask(t, "auditor", "GET", "/states?subject=nobody", "").into(t, &none)
	if len(none.States) != 0 || none.More {
		t.Errorf("%+v", none)
	}
}

// Flips are read backward by before, and followed by after.
func TestFlips_PagedBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := func(query string) (got []int64, next int64) {
		var out api.StateFlips
		w.ask(t, "auditor", "GET", "/flips?"+query, "").into(t, &out)
		for _, f := range out.Flips {
			got = append(got, f.ID)
		}
		return got, out.Next
	}
	for query, want := range map[string]struct {
		first, next int64
		n           int
	}{
		"limit=2": {5, 4, 2}, "limit=2&before=4": {3, 2, 2}, "limit=9": {5, 0, 5}, "order=oldest&limit=2": {1, 2, 2}, "order=oldest&after=2&limit=2": {3, 4, 2}, "since=7m": {5, 0, 3},
	} {
		got, next := ids(query)
		if len(got) != want.n || got[0] != want.first || next != want.next {
			t.Errorf("%s: %v, next %d", query, got, next)
		}
	}
}

func TestStates_NoDeskKeepsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *api.Config, p *api.Ports) { p.States = &readertest.States{} })
	for _, path := range []string{"/states?subject=alice", "/flips"} {
		if p := w.ask(t, "auditor", "GET", path, "").problem(t); p.Status != http.StatusNotFound || !strings.Contains(p.Hint, "DOCKET_STATES=true") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if p := newWorld(t).ask(t, "auditor", "GET", "/flips?places=a=3", "").problem(t); p.Status != http.StatusUnprocessableEntity || !strings.Contains(p.Hint, "after or before") {
		t.Errorf("places of shards on a desk without them: %+v", p)
	}
	for _, path := range []string{"/states?subject=a%00b", "/flips?path=%ff", "/flips?since=gestern"} {
		if p := newWorld(t).ask(t, "auditor", "GET", path, "").problem(t); p.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// A subject may be a part of a payload: a viewer sees none.
func TestStates_NotForViewers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/states?subject=alice", "/flips"} {
		if a := w.ask(t, "viewer", "GET", path, ""); a.code != http.StatusForbidden || strings.Contains(a.body, "alice") {
			t.Errorf("%s: %+v", path, a)
		}
	}
}
