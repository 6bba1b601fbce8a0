package tree

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/testkit/readertest"
)

var allShards = []string{"DOCKET_SHARDS=a=0-3,b=4-7", "DOCKET_SHARD_URLS=a=postgres://u:" + planted + "@a/x b=postgres://u:" + planted + "@b/x"}

// inShards divides twelve decisions between two shards, in turn.
func inShards(environ ...string) (w *world, a, b *readertest.Store) {
	a, b = decisions(0), decisions(0)
	for i, d := range readertest.Decisions(12, now) {
		[]*readertest.Store{a, b}[i%2].Add(d)
	}
	return &world{many: sharded.New(sharded.Shard{Name: "a", Store: a}, sharded.Shard{Name: "b", Store: b}), bare: true, environ: append(environ, allShards...)}, a, b
}

func idsOf(t *testing.T, lines string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var d struct {
			ID    string `json:"decision_id"`
			Shard string `json:"shard"`
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil || d.Shard == "" {
			t.Fatalf("%s: %v", line, err)
		}
		ids = append(ids, d.ID)
	}
	return ids
}

// Both shards together show what one database with all decisions shows.
func TestShards_LikeOneDatabase(t *testing.T) {
	t.Parallel()
	one := &world{store: decisions(12)}
	want := one.call("logs", "--json", "-n", "5")
	w, _, _ := inShards()
	got := w.call("logs", "--lines", "-n", "100")
	if got.code != 0 || len(idsOf(t, got.out)) != 12 || strings.Contains(got.err, "PARTIAL") {
		t.Errorf("exit %d, %s%s", got.code, got.out, got.err)
	}
	first := w.call("logs", "--json", "-n", "5")
	var page struct {
		Decisions []struct {
			ID string `json:"decision_id"`
		}
		Next      string
		Freshness string
	}
	if err := json.Unmarshal([]byte(first.out), &page); err != nil || len(page.Decisions) != 5 || page.Next == "" || page.Freshness != "" {
		t.Fatalf("%v: %s", err, first.out)
	}
	for _, d := range page.Decisions {
		if !strings.Contains(want.out, d.ID) {
			t.Errorf("%s is not on the page of one database", d.ID)
		}
	}
	rest := w.call("logs", "--lines", "-n", "100", "--after", page.Next)
	if n := len(idsOf(t, rest.out)); rest.code != 0 || n != 7 {
		t.Errorf("behind the first page: %d decisions, exit %d, %s", n, rest.code, rest.err)
	}
	if got, want := w.call("stats", "--since", "30m", "--json"), one.call("stats", "--since", "30m", "--json"); got.out != want.out || got.code != 0 {
		t.Errorf("counts:\n%s\nwant:\n%s", got.out, want.out)
	}
}

// An answer without a shard says so, in each form. It is an answer all the same.
func TestShards_AwayIsSaid(t *testing.T) {
	t.Parallel()
	id := readertest.Decisions(12, now)[0].ID // of shard a
	for name, args := range map[string][]string{
		"logs": {"logs"}, "lines": {"logs", "--lines"}, "full": {"logs", "--full", "-n", "3"}, "stats": {"stats", "--since", "30m"},
		"one": {"logs", id}, "one as lines": {"logs", id, "--lines"}, "why": {"why", id}, "diff": {"diff", id, id}, "shortened": {"logs", id[:8]},
	} {
		w, _, b := inShards()
		b.Fail(errAway)
		const note = "PARTIAL: shard b was not asked, so its decisions are missing here: " + "the database is away"
		if r := w.call(args...); r.code != 0 || strings.Count(r.err, note) != 1 || r.out == "" {
			t.Errorf("%s: exit %d, %s", name, r.code, r.err)
		}
		if slices.Contains(args, "--lines") {
			continue
		}
		r := w.call(append(args, "--json")...)
		var out struct {
			Freshness string
			NotAsked  []struct{ Shard, Why string } `json:"shards_not_asked"`
		}
		if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != 0 || out.Freshness != "PARTIAL" || len(out.NotAsked) != 1 || out.NotAsked[0].Shard != "b" {
			t.Errorf("%s --json: exit %d, %v, %+v", name, r.code, err, out)
		}
	}
	w, a, b := inShards()
	a.Fail(errAway)
	b.Fail(errAway)
	if r := w.call("logs"); r.code != 1 || strings.Contains(r.err, "PARTIAL") || !strings.Contains(r.err, errAway.Error()) {
		t.Errorf("without any shard: exit %d, %s", r.code, r.err)
	}
	// A decision that the missing shard may have is not said to be nowhere.
	w, _, b = inShards()
	b.Fail(errAway)
	if r := w.call("logs", "no-such-decision-id"); r.code != 1 || !strings.Contains(r.err, "PARTIAL: shard b") {
		t.Errorf("an unknown id: exit %d, %s", r.code, r.err)
	}
}

// A follower shows what the other shards store, says once that a shard is away, and once that it is back.
func TestShards_FollowWithoutOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, a, b := inShards()
		w.signals = make(chan os.Signal, 1)
		done := make(chan result)
		go func() { done <- w.call("logs", "-f", "-n", "0", "--lines") }()
		time.Sleep(2 * time.Second) // of the bubble's clock
		late := readertest.Decisions(14, now)[12:]
		b.Fail(errAway)
		time.Sleep(3 * time.Second)
		a.Add(late[0])
		time.Sleep(3 * time.Second)
		b.Fail(nil)
		b.Add(late[1])
		time.Sleep(3 * time.Second)
		w.signals <- syscall.SIGTERM
		r := <-done
		if ids := idsOf(t, r.out); r.code != 0 || !slices.Equal(ids, []string{late[0].ID, late[1].ID}) {
			t.Errorf("exit %d, followed %v", r.code, ids)
		}
		if strings.Count(r.err, "PARTIAL: shard b") != 1 || strings.Count(r.err, "all shards answer again") != 1 {
			t.Errorf("said %s", r.err)
		}
	})
}

// Each shard has a ledger and an archive, so the other commands need its name.
func TestShards_OthersNeedOne(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"dlq", "list"}, {"jobs", "list"}, {"report"}, {"dlq", "groups"}, {"consume"}, {"replay"}} {
		w, _, _ := inShards()
		r := w.call(args...)
		if r.code != 2 || !strings.Contains(r.err, "DOCKET_SHARD: is missing; name one of a, b") {
			t.Errorf("%v: exit %d, %s", args, r.code, r.err)
		}
	}
	w, _, _ := inShards("DOCKET_SHARD=b")
	if r := w.call("dlq", "list"); r.code != 0 {
		t.Errorf("with a shard: exit %d, %s", r.code, r.err)
	}
}

var _ reader.Store = (*sharded.Store)(nil)
