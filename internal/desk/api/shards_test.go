package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/sharded"
	"docket/internal/history/state"
	"docket/internal/record/verdict"
	"docket/internal/testkit/readertest"
)

// newShardedWorld has thirty decisions in two shards, in turn.
func newShardedWorld(t *testing.T) (w *world, a, b *readerStore) {
	t.Helper()
	a, b = newStore(0), newStore(0)
	for i, d := range readertest.Decisions(30, noon) {
		[]*readerStore{a, b}[i%2].Add(d)
	}
	all := sharded.New(sharded.Shard{Name: "a", Store: a}, sharded.Shard{Name: "b", Store: b})
	return newWorld(t, func(_ *api.Config, p *api.Ports) { p.Decisions = all }), a, b
}

type partial struct {
	Decisions []struct {
		ID    string `json:"decision_id"`
		Shard string `json:"shard"`
	}
	NotAsked []string `json:"shards_not_asked"`
	Tail     string
}

func asked(t *testing.T, w *world, path string) (p partial, status int) {
	t.Helper()
	got := w.ask(t, "auditor", http.MethodGet, path, "")
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("%s: %v: %s", path, err, got.body)
	}
	return p, got.code
}

// An answer of the API without a shard has the decisions of the others and names the shard.
func TestShards_AwayIsNamed(t *testing.T) {
	t.Parallel()
	w, _, b := newShardedWorld(t)
	first := readertest.Decisions(30, noon)[0].ID
	paths := []string{"/decisions?limit=100", "/decisions?limit=20&payload=true", "/decisions/" + first, "/decisions/" + first + "/why", "/decisions/stats", "/decisions/diff?a=" + first + "&b=" + first, "/decisions/follow?wait=0"}
	for _, path := range paths {
		if p, status := asked(t, w, path); status != http.StatusOK || p.NotAsked != nil {
			t.Errorf("%s: %d, not asked %v", path, status, p.NotAsked)
		}
	}
	if p, _ := asked(t, w, "/decisions?limit=100"); len(p.Decisions) != 30 || p.Decisions[0].Shard == "" {
		t.Errorf("%d decisions, the first of shard %q", len(p.Decisions), p.Decisions[0].Shard)
	}
	b.Fail(errors.New("gone"))
	for _, path := range paths {
		if p, status := asked(t, w, path); status != http.StatusOK || !slices.Equal(p.NotAsked, []string{"b"}) {
			t.Errorf("%s: %d, not asked %v", path, status, p.NotAsked)
		}
	}
	if p, _ := asked(t, w, "/decisions?limit=100"); len(p.Decisions) != 15 {
		t.Errorf("%d decisions of shard a", len(p.Decisions))
	}
}

// An explanation is of one decision, and names the others with its id: with another time, or in another shard.
func TestWhy_NamesOthersOfID(t *testing.T) {
	t.Parallel()
	w, a, b := newShardedWorld(t)
	d := readertest.Decisions(31, noon)[30]
	d.ID = "three-times"
	a.Add(d)
	b.Add(d)
	d.Time = d.Time.Add(-time.Second)
	b.Add(d)
	for _, query := range []string{"", "?elsewhere=false"} {
		var why api.Explained
		w.ask(t, "auditor", http.MethodGet, "/decisions/"+d.ID+"/why"+query, "").into(t, &why)
		others := slices.DeleteFunc(why.Notes, func(note string) bool {
			return !strings.HasPrefix(note, "another stored decision has this id: ")
		})
		if len(others) != 2 {
			t.Errorf("%s: the others are %q", query, others)
		}
	}
}

// The tail of an answer has a place in each shard.
func TestShards_FollowByTail(t *testing.T) {
	t.Parallel()
	w, a, b := newShardedWorld(t)
	begun, _ := asked(t, w, "/decisions/follow?wait=0")
	late := readertest.Decisions(32, noon)[30:]
	a.Add(late[0])
	b.Add(late[1])
	p, status := asked(t, w, "/decisions/follow?wait=0&tail="+begun.Tail)
	if status != http.StatusOK || len(p.Decisions) != 2 {
		t.Errorf("%d: %+v", status, p)
	}
}

// States and flips of the API are joined, paged by the places of their shards, and name a shard that is away.
func TestShards_StatesAndFlips(t *testing.T) {
	t.Parallel()
	a, b := newStates(), newStates()
	all := sharded.NewStates(sharded.StatesShard{Name: "a", Store: a}, sharded.StatesShard{Name: "b", Store: b})
	w := newWorld(t, func(_ *api.Config, p *api.Ports) { p.States = all })
	var states api.SubjectStates
	w.ask(t, "auditor", "GET", "/states?subject=alice", "").into(t, &states)
	if len(states.States) != 3 || states.States[0].Decisions != 18 || !slices.Equal(states.Shards, []string{"a", "b"}) || states.ShardsNotAsked != nil {
		t.Errorf("%+v", states)
	}
	seen := map[string]int{}
	for _, order := range []string{"newest", "oldest"} {
		query := "/flips?limit=3&order=" + order
		for places := ""; ; {
			var out api.StateFlips
			w.ask(t, "auditor", "GET", query+places, "").into(t, &out)
			for _, f := range out.Flips {
				seen[fmt.Sprint(f.Shard, f.ID)]++
			}
			if places = "&places=" + url.QueryEscape(out.NextPlaces); len(out.Flips) == 0 || out.NextPlaces == "" {
				break
			}
		}
	}
	if len(seen) != 10 || slices.ContainsFunc(slices.Collect(maps.Values(seen)), func(n int) bool { return n != 2 }) {
		t.Errorf("both orders have %v", seen)
	}
	if got := w.ask(t, "auditor", "GET", "/flips?places=x", ""); got.code != http.StatusUnprocessableEntity {
		t.Errorf("wrong places: %d", got.code)
	}
	for _, query := range []string{"after=3", "before=3", "before=3&order=oldest", "after=3&places=a=1"} {
		if p := w.ask(t, "auditor", "GET", "/flips?"+query, "").problem(t); p.Status != http.StatusUnprocessableEntity || !strings.Contains(p.Hint, "use places") {
			t.Errorf("%s: %+v", query, p)
		}
	}
	var newest api.StateFlips
	w.ask(t, "auditor", "GET", "/flips?limit=1", "").into(t, &newest)
	b.Note(state.Flip{ID: 9, Key: state.Key{Subject: "alice", Path: "admin/x"}, Was: verdict.Denied, Verdict: verdict.Allowed, StoredAt: noon})
	var later api.StateFlips
	w.ask(t, "auditor", "GET", "/flips?order=oldest&places="+url.QueryEscape(newest.NewestPlaces), "").into(t, &later)
	if len(later.Flips) != 1 || later.Flips[0].ID != 9 || later.Flips[0].Shard != "b" || later.NewestPlaces != "" {
		t.Errorf("from the newest places %q: %+v", newest.NewestPlaces, later)
	}
	b.Fail(errors.New("gone"))
	for _, path := range []string{"/states?subject=alice", "/flips"} {
		var out struct {
			NotAsked  []string `json:"shards_not_asked"`
			Freshness string
		}
		w.ask(t, "auditor", "GET", path, "").into(t, &out)
		if !slices.Equal(out.NotAsked, []string{"b"}) || out.Freshness != "PARTIAL" {
			t.Errorf("%s: %+v", path, out)
		}
	}
}
