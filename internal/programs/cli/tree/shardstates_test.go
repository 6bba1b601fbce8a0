package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/sharded"
	"docket/internal/history/state"
	"docket/internal/record/verdict"
	"docket/internal/testkit/completetest"
	"docket/internal/testkit/readertest"
)

// statesInShards gives the states of alice to shard a, and newer ones with another verdict to shard b.
func statesInShards() (w *world, a, b *readertest.States) {
	a, b = statesKept(), statesKept()
	b.Mark.FullAt = nil
	for i := range b.All {
		s := &b.All[i]
		s.Version.Time, s.Verdict = s.Version.Time.Add(time.Second), verdict.Error
	}
	b.Noted = b.Noted[:1]
	all := sharded.NewStates(sharded.StatesShard{Name: "a", Store: a}, sharded.StatesShard{Name: "b", Store: b})
	return &world{joined: all, bare: true, environ: allShards}, a, b
}

type shardedStates struct {
	States []struct {
		Verdict   string
		Decisions int
		Shards    []string
	}
	Flips []struct {
		Shard string
		ID    string `json:"decision_id"`
	}
	Shards    []string
	Freshness string
	NotAsked  []struct{ Shard, Why string } `json:"shards_not_asked"`
}

func statesOf(t *testing.T, r result) (out shardedStates) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != 0 {
		t.Fatalf("exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	return out
}

func TestShards_StatesAreJoined(t *testing.T) {
	t.Parallel()
	w, _, b := statesInShards()
	out := statesOf(t, w.call("state", "alice", "--json"))
	if s := out.States[0]; len(out.States) != 2 || s.Verdict != "error" || s.Decisions != 2408 || !slices.Equal(s.Shards, []string{"a", "b"}) || len(out.Shards) != 2 || out.NotAsked != nil {
		t.Errorf("%+v", out)
	}
	if r := w.call("state", "alice"); !strings.Contains(r.err, "of the shards a, b") || strings.Contains(r.err, "PARTIAL") {
		t.Errorf("%s", r.err)
	}
	flips := statesOf(t, w.call("flips", "--json"))
	if len(flips.Flips) != 4 || flips.Flips[0].Shard != "a" || flips.NotAsked != nil {
		t.Errorf("%+v", flips)
	}
	if r := w.call("flips"); !strings.Contains(r.err, "between its own decisions") {
		t.Errorf("%s", r.err)
	}
	b.Fail(errors.New("gone"))
	for _, args := range []string{"state alice", "flips"} {
		out := statesOf(t, w.call(append(strings.Fields(args), "--json")...))
		if out.Freshness != "PARTIAL" || len(out.NotAsked) != 1 || out.NotAsked[0].Shard != "b" || out.NotAsked[0].Why != "gone" || !slices.Equal(out.Shards, []string{"a"}) {
			t.Errorf("%s: %+v", args, out)
		}
		if r := w.call(strings.Fields(args)...); !strings.Contains(r.err, "PARTIAL: shard b was not asked") {
			t.Errorf("%s: %s", args, r.err)
		}
	}
}

// A follower waits for a shard that is away, shows each new flip of both once, and nothing twice.
func TestShards_FlipsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, a, b := statesInShards()
		done := make(chan result, 1)
		go func() { done <- w.call("flips", "-f", "--json", "-n", "1") }()
		for n := range 6 {
			time.Sleep(10 * time.Second)
			switch n {
			case 2:
				b.Fail(errors.New("gone"))
			case 4:
				b.Fail(nil)
			}
			[]*readertest.States{a, b}[n%2].Note(state.Flip{ID: int64(10 + n), Key: state.Key{Subject: "alice", Path: "p"}, Was: verdict.Allowed, Verdict: verdict.Denied, Version: state.Version{Time: now, ID: fmt.Sprint("new", n)}, StoredAt: now})
		}
		time.Sleep(10 * time.Second)
		a.Fail(errors.New("no right"))
		b.Fail(errors.New("no right"))
		r := <-done
		var got []string
		for line := range strings.Lines(r.out) {
			var f struct {
				ID string `json:"decision_id"`
			}
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			got = append(got, f.ID)
		}
		if want := "d9 new0 new1 new2 new3 new4 new5"; r.code != 1 || sortedFrom(got, 1) != want || !strings.Contains(r.err, "shard b was not asked") || !strings.Contains(r.err, "all shards answer again") {
			t.Errorf("exit %d, %q, want %q: %s", r.code, got, want, r.err)
		}
	})
}

// A desk of shards gives the same states and flips as the shards themselves, and names a shard that is away.
func TestDesk_StatesOfShards(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"state alice", "flips", "flips -n 2", "flips --subject alice --json", "state alice --json"} {
		both(t, "auditor", func() *world {
			w, _, _ := statesInShards()
			w.complete = completed(t, &completetest.Log{}, completetest.Books{})
			return w
		}, strings.Fields(args)...)
	}
	w, _, b := statesInShards()
	w.complete = completed(t, &completetest.Log{}, completetest.Books{})
	w.overDesk(t, "auditor")
	b.Fail(errors.New("gone"))
	for _, args := range []string{"state alice", "flips"} {
		out := statesOf(t, w.call(append(strings.Fields(args), "--json")...))
		if out.Freshness != "PARTIAL" || len(out.NotAsked) != 1 || out.NotAsked[0].Shard != "b" || !slices.Equal(out.Shards, []string{"a"}) {
			t.Errorf("%s: %+v", args, out)
		}
		if r := w.call(strings.Fields(args)...); !strings.Contains(r.err, "PARTIAL: shard b was not asked") {
			t.Errorf("%s: %s", args, r.err)
		}
	}
}

// A follower by a desk of shards shows each new flip once, and none of more than a thousand old ones again.
func TestDesk_FlipsOfShardsFollowed(t *testing.T) {
	t.Parallel()
	w, a, b := statesInShards()
	note := func(to *readertest.States, id int64, name string) {
		to.Note(state.Flip{ID: id, Key: state.Key{Subject: "alice", Path: "p"}, Was: verdict.Allowed, Verdict: verdict.Denied, Version: state.Version{Time: now, ID: name}, StoredAt: now})
	}
	for i := range int64(1200) {
		note(a, 10+i, fmt.Sprint("old", i))
	}
	counted := &asks{Store: w.joined}
	w.joined, w.signals = counted, make(chan os.Signal, 1)
	w.overDesk(t, "auditor")
	done := make(chan result, 1)
	go func() { done <- w.call("flips", "-f", "--json", "-n", "1", "--every", "100ms") }()
	shown := func(name string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !strings.Contains(w.out.String(), `"`+name+`"`); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s is not shown: %.2000s%.2000s", name, w.out.String(), w.err.String())
			}
		}
	}
	said := func(text string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !strings.Contains(w.err.String(), text); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q is not said: %.2000s", text, w.err.String())
			}
		}
	}
	for end := time.Now().Add(10 * time.Second); w.out.String() == "" && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	note(b, 10, "new0")
	shown("new0")
	b.Fail(errors.New("gone"))
	said("shard b was not asked")
	note(a, 3000, "new1")
	note(b, 11, "new2")
	shown("new1")
	b.Fail(nil)
	shown("new2")
	said("all shards answer again")
	began, before := time.Now(), counted.n.Load()
	time.Sleep(500 * time.Millisecond)
	if n, most := counted.n.Load()-before, int64(time.Since(began)/(100*time.Millisecond))+2; n > most {
		t.Errorf("%d questions, want at most %d", n, most)
	}
	w.signals <- syscall.SIGINT
	r := <-done
	var got []string
	for line := range strings.Lines(r.out) {
		var f struct {
			ID    string `json:"decision_id"`
			Shard string
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Shard == "" {
			t.Fatalf("%v: %s", err, line)
		}
		got = append(got, f.ID)
	}
	if want := "new0 new1 new2"; r.code != 0 || len(got) != 4 || sortedFrom(got[1:], 0) != want {
		t.Errorf("exit %d, %.500q, want one old flip and %q: %s", r.code, got, want, r.err)
	}
}

// asks counts questions for flips.
type asks struct {
	state.Store
	n atomic.Int64
}

func (a *asks) Flips(ctx context.Context, q state.FlipQuery) ([]state.Flip, state.Mark, error) {
	a.n.Add(1)
	return a.Store.Flips(ctx, q)
}

func sortedFrom(all []string, n int) string {
	slices.Sort(all[min(n, len(all)):])
	return strings.Join(all, " ")
}
