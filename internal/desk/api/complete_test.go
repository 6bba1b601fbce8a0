package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/testkit/completetest"
)

// completed gives a world answers that say how complete they are, by a look at l.
func completed(t *testing.T, l *completetest.Log, b completetest.Books) func(*api.Config, *api.Ports) {
	t.Helper()
	return func(_ *api.Config, p *api.Ports) {
		w := completetest.Watch(l, func() time.Time { return noon })
		if err := w.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Complete = &complete.Answers{Status: func(context.Context) complete.Status { return w.Status() }, Books: b, Within: time.Hour}
	}
}

// questions are the paths of all answers that say how complete they are.
var questions = map[string]string{
	"search": "/decisions?limit=2", "decision": "/decisions/" + decisionID, "why": "/decisions/" + decisionID + "/why", "stats": "/decisions/stats?since=3h",
}

func TestComplete_EachAnswerSaysIt(t *testing.T) {
	t.Parallel()
	l := &completetest.Log{Ends: map[string]int64{completetest.Source: 9}, Done: map[string]int64{completetest.Source: 9}, Values: []string{completetest.Decision(noon, "a/b")}}
	for name, path := range questions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got reader.Completeness
			newWorld(t, completed(t, l, completetest.Books{N: 4})).ask(t, "auditor", http.MethodGet, path, "").into(t, &got)
			if got.Freshness != reader.Fresh && (name == "search" || name == "stats") {
				t.Errorf("it is %s", got.Freshness)
			}
			if got.CompleteUntil == nil || !got.CompleteUntil.Equal(noon.Add(-complete.Margin)) || got.Behind == nil || *got.Behind != 0 || got.ETA == nil || *got.ETA != 0 {
				t.Errorf("%+v", got)
			}
			if got.Parked == nil || *got.Parked > 1 || got.DeadLettered == nil || *got.DeadLettered != 4 || got.Spooled != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// States say how complete they are, but not until when.
func TestComplete_States(t *testing.T) {
	t.Parallel()
	l := &completetest.Log{Ends: map[string]int64{completetest.Source: 9}, Done: map[string]int64{completetest.Source: 9}}
	for path, want := range map[string]reader.Freshness{"/states?subject=alice": reader.Fresh, "/states?subject=nobody": reader.NotFound, "/flips": reader.Fresh} {
		var got map[string]any
		newWorld(t, completed(t, l, completetest.Books{N: 4})).ask(t, "auditor", http.MethodGet, path, "").into(t, &got)
		if until, there := got["complete_until"]; got["freshness"] != string(want) || !there || until != nil || got["behind"] != 0.0 || got["dead_lettered"] != 4.0 {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestComplete_UnknownIsNull(t *testing.T) {
	t.Parallel()
	for name, path := range questions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got map[string]any
			newWorld(t).ask(t, "auditor", http.MethodGet, path, "").into(t, &got)
			for _, field := range []string{"complete_until", "behind", "eta_ms", "eta_low_ms", "eta_high_ms", "parked", "dead_lettered", "spooled"} {
				if v, there := got[field]; !there || v != nil {
					t.Errorf("%s is %v", field, v)
				}
			}
			if got["freshness"] != "PARTIAL" {
				t.Errorf("it is %v", got["freshness"])
			}
		})
	}
}

// laterStore notes whether the ledger was asked before any row was read.
type laterStore struct {
	*readerStore
	asked *bool
	t     *testing.T
}

func (s laterStore) first() {
	if !*s.asked {
		s.t.Error("rows were read before the dead letters were counted")
	}
}

func (s laterStore) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	s.first()
	return s.readerStore.Search(ctx, f, p)
}

func (s laterStore) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	s.first()
	return s.readerStore.ByID(ctx, id)
}

func (s laterStore) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	s.first()
	return s.readerStore.Stats(ctx, q)
}

func TestComplete_RowsAreReadLast(t *testing.T) {
	t.Parallel()
	for name, path := range questions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := false
			w := newWorld(t, completed(t, &completetest.Log{}, completetest.Books{Asked: func(complete.Range) { asked = true }}), func(_ *api.Config, p *api.Ports) {
				p.Decisions = laterStore{newStore(30), &asked, t}
			})
			if a := w.ask(t, "auditor", http.MethodGet, path, ""); a.code != http.StatusOK || !asked {
				t.Errorf("%d %s", a.code, a.body)
			}
		})
	}
}

func TestComplete_AsksForTheRange(t *testing.T) {
	t.Parallel()
	var got complete.Range
	w := newWorld(t, completed(t, &completetest.Log{}, completetest.Books{Asked: func(r complete.Range) { got = r }}))
	w.ask(t, "viewer", http.MethodGet, "/decisions?"+url.Values{"since": {"2026-05-01T00:00:00Z"}, "until": {"2026-05-02T00:00:00Z"}, "path": {"a/*"}, "service": {"a"}}.Encode(), "")
	if got.Since.Day() != 1 || got.Until.Day() != 2 || len(got.Paths) != 1 || got.Paths[0] != "a/*" || len(got.Services) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestComplete_AbsentDecision(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gaps []lookup.Gap
		want reader.Freshness
		says string
	}{
		"all was searched":    {nil, reader.NotFound, "none was found in any other place"},
		"a place was not":     {[]lookup.Gap{{Name: "archives", Why: "away"}}, reader.Partial, "is not known"},
		"a day was forgotten": {[]lookup.Gap{{Name: "archives", Why: "over", Forgotten: true}}, reader.NotFound, "days that may have had it were forgotten"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, completed(t, &completetest.Log{}, completetest.Books{}), func(_ *api.Config, p *api.Ports) {
				p.Elsewhere = func(_ context.Context, id string) (lookup.Answer, error) {
					return lookup.Answer{ID: id, NotLooked: c.gaps}, nil
				}
			})
			p := w.ask(t, "auditor", http.MethodGet, "/decisions/no-such-decision", "").problem(t)
			if p.Status != http.StatusNotFound || p.Completeness == nil || p.Completeness.Freshness != c.want || p.Completeness.CompleteUntil == nil || !strings.Contains(p.Detail, c.says) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// countedStore counts the questions for an id.
type countedStore struct {
	reader.Store
	asked *int
}

func (s countedStore) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	*s.asked++
	return s.Store.ByID(ctx, id)
}

// TestComplete_AroundAStoredDecision has the fast look and the table asked once for an id with a row. The whole look is asked only
// for others. If the ledger does not answer, the table is asked first, so that one error tells that the database is away.
func TestComplete_AroundAStoredDecision(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		books completetest.Books
		want  []int // table, fast look, whole look, after each question
	}{
		"the ledger answers": {completetest.Books{}, []int{1, 1, 0, 1, 0, 1, 1, 1, 1}},
		"it does not":        {completetest.Books{Err: errors.New("away")}, []int{2, 1, 0, 1, 0, 1, 1, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var table, around, elsewhere int
			w := newWorld(t, completed(t, &completetest.Log{}, c.books), func(_ *api.Config, p *api.Ports) {
				p.Decisions = countedStore{p.Decisions, &table}
				p.Around = func(ctx context.Context, id string) (lookup.Answer, error) {
					around++
					rows, err := p.Decisions.ByID(ctx, id)
					return lookup.Answer{ID: id, Rows: rows}, err
				}
				p.Elsewhere = func(_ context.Context, id string) (lookup.Answer, error) {
					elsewhere++
					return lookup.Answer{ID: id}, nil
				}
			})
			for i, id := range []string{decisionID, "no-such-decision", "00000000-0000-4000-8000-000000000000"} {
				table, around, elsewhere = 0, 0, 0
				w.ask(t, "auditor", http.MethodGet, "/decisions/"+id, "")
				if got := []int{table, around, elsewhere}; !slices.Equal(got, c.want[3*i:3*i+3]) {
					t.Errorf("%s: table, fast look and whole look were asked %v times", id, got)
				}
			}
		})
	}
}

// partialStore lacks a day.
type partialStore struct{ reader.Store }

func (s partialStore) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	all, err := s.Store.ByID(ctx, id)
	var parts reader.Parts
	parts.Miss("day 2026-03-04, which is being archived", errors.New("no right"))
	return all, errors.Join(err, reader.Told(ctx, parts.Err()))
}

// TestComplete_LooksThatLackRows: an answer that lacks a day says so, also where a look around the decision read its row.
func TestComplete_LooksThatLackRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, completed(t, &completetest.Log{}, completetest.Books{}), func(_ *api.Config, p *api.Ports) {
		p.Decisions = partialStore{p.Decisions}
		p.Around = func(ctx context.Context, id string) (lookup.Answer, error) {
			l := lookup.Look{Rows: p.Decisions.ByID}
			return l.Find(ctx, id), nil
		}
	})
	for _, path := range []string{"/decisions/" + decisionID, "/decisions/" + decisionID + "/why?elsewhere=true"} {
		var got struct {
			NotRead       []string   `json:"not_read"`
			CompleteUntil *time.Time `json:"complete_until"`
		}
		w.ask(t, "auditor", http.MethodGet, path, "").into(t, &got)
		if len(got.NotRead) != 1 || got.CompleteUntil != nil {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// TestWhy_OfAnotherTime: where none of the decisions that were found is of the asked time, another place may have it.
func TestWhy_OfAnotherTime(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]string{"away": "if another place has one is not known", "": "no decision of that id is of that time"} {
		w := newWorld(t, func(_ *api.Config, p *api.Ports) {
			p.Elsewhere = func(ctx context.Context, id string) (a lookup.Answer, err error) {
				a.ID = id
				if a.Rows, err = p.Decisions.ByID(ctx, id); why != "" {
					a.NotLooked = []lookup.Gap{{Name: "archives", Why: why}}
				}
				return a, err
			}
		})
		for _, query := range []string{"", "&elsewhere=false"} {
			a := w.ask(t, "auditor", http.MethodGet, "/decisions/"+decisionID+"/why?timestamp=2020-01-01T00:00:00Z"+query, "")
			if a.code != http.StatusNotFound || !strings.Contains(a.body, want) || strings.Contains(a.body, `"not_looked":["archives: away"]`) != (why != "") {
				t.Errorf("%q: %d %s", why, a.code, a.body)
			}
		}
	}
}

// gapStore has places that a search does not look at completely.
type gapStore struct {
	reader.Store
	gaps []reader.Gap
}

func (s gapStore) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	found, err := s.Store.Search(ctx, f, p)
	found.NotLooked = s.gaps
	return found, err
}

// TestComplete_ForgottenDay: a search tells a day that was forgotten on purpose, and is not PARTIAL without it.
func TestComplete_ForgottenDay(t *testing.T) {
	t.Parallel()
	for _, forgotten := range []bool{false, true} {
		w := newWorld(t, completed(t, &completetest.Log{}, completetest.Books{}), func(_ *api.Config, p *api.Ports) {
			p.Decisions = gapStore{p.Decisions, []reader.Gap{{Name: "archived days", Why: "over", Forgotten: forgotten}}}
		})
		var list struct {
			Freshness reader.Freshness `json:"freshness"`
			NotLooked []string         `json:"not_looked"`
			Gaps      []api.Gap        `json:"gaps"`
		}
		for _, path := range []string{"/decisions", "/decisions?payload=true&limit=25"} { // with payloads it is gathered in parts
			list.NotLooked, list.Gaps = nil, nil
			w.ask(t, "auditor", http.MethodGet, path, "").into(t, &list)
			if (list.Freshness == reader.Partial) == forgotten || len(list.NotLooked) != 1 || len(list.Gaps) != 1 || list.Gaps[0].Forgotten != forgotten {
				t.Errorf("%s, forgotten %v: %+v", path, forgotten, list)
			}
		}
	}
}
