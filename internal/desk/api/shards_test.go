package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/history/sharded"
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
