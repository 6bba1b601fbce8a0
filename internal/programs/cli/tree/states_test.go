package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/state"
	"docket/internal/programs/cli/term"
	"docket/internal/record/verdict"
	"docket/internal/testkit/readertest"
)

// statesKept has two subjects, one of them with a name that plays with the terminal.
func statesKept() *readertest.States {
	at := func(minutes int, id string) state.Version {
		return state.Version{Time: now.Add(-time.Duration(minutes) * time.Minute), ID: id}
	}
	full := now.Add(-time.Hour)
	trimmed := now.Add(-100 * 24 * time.Hour)
	s := &readertest.States{Mark: state.Mark{TrimmedBefore: &trimmed, StoredBefore: now.Add(-12 * time.Second), StoredSince: now.Add(-90 * 24 * time.Hour), SubjectsBy: "*=input:/user", FullAt: &full, States: 3}}
	s.All = []state.State{
		{
			Key: state.Key{Subject: "alice", Path: "admin/users"}, Verdict: verdict.Denied, Revision: "authz@r2", Hash: state.Hash{1}, Since: at(90, "502d43b4-a"), LastSeen: now.Add(-time.Minute),
			Decisions: 1204, Version: at(1, "502d43b4-b"), Before: &state.Before{Verdict: verdict.Allowed, Version: at(91, "502d43b4-c")},
		},
		{Key: state.Key{Subject: "alice", Path: "shop/\x1b[31morders"}, Verdict: verdict.Allowed, Since: at(300, "d1"), LastSeen: now.Add(-2 * time.Minute), Decisions: 7, Version: at(2, "d2"), Late: 1},
		{Key: state.Key{Subject: "bob", Path: "admin/users"}, Verdict: verdict.Allowed, Since: at(300, "d1"), LastSeen: now, Decisions: 1, Version: at(0, "d3")},
	}
	s.Noted = []state.Flip{
		{ID: 1, Key: state.Key{Subject: "bob", Path: "admin/users"}, Was: verdict.Denied, Verdict: verdict.Allowed, WasRevision: "authz@r1", Revision: "authz@r1", Version: at(300, "d1"), WasVersion: at(301, "d0"), StoredAt: now.Add(-5 * time.Hour)},
		{ID: 2, Key: state.Key{Subject: "alice", Path: "admin/users"}, Was: verdict.Allowed, Verdict: verdict.Denied, WasRevision: "authz@r1", Revision: "authz@r2", Version: at(90, "502d43b4-a"), WasVersion: at(91, "502d43b4-c"), StoredAt: now.Add(-89 * time.Minute)},
		{ID: 4, Key: state.Key{Subject: "al\x1b[31mice", Path: "admin/users"}, Was: verdict.Denied, Verdict: verdict.Error, Version: at(95, "d9"), WasVersion: at(1, "502d43b4-b"), StoredAt: now, Late: true},
	}
	return s
}

func TestStates_Golden(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"state": {"state", "alice"}, "flips": {"flips"}} {
		for how, terminal := range map[string]term.Terminal{"140": person(140), "80": person(80), "pipe": {}} {
			w := &world{states: statesKept(), terminal: terminal}
			r := w.call(args...)
			golden(t, name+"_"+how+".txt", r.out+"--\n"+r.err)
			if r.code != 0 || strings.ContainsRune(r.out+r.err, 0x1b) {
				t.Errorf("%s %s: exit %d: %q", name, how, r.code, r.out)
			}
		}
		w := &world{states: statesKept()}
		r := w.call(append(args, "--json")...)
		golden(t, name+"_json.txt", r.out)
		var out map[string]any
		if err := json.Unmarshal([]byte(r.out), &out); err != nil || out["stored_before"] == nil || out["subjects_by"] != "*=input:/user" {
			t.Errorf("%v, %v", err, out)
		}
	}
}

func TestStates_Chosen(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"state alice --path admin/*":             "admin/users",
		"flips --subject alice":                  "502d43b4-a",
		"flips --since 100m --path admin/users":  "d9 502d43b4-a",
		"flips -n 1":                             "d9",
		"flips --path shop/*":                    "",
		"flips --subject bob --since 2h":         "",
		"flips --subject bob --path admin/users": "d1",
	} {
		w := &world{states: statesKept()}
		r := w.call(append(strings.Fields(args), "--json")...)
		var out struct {
			States []struct{ Path string }
			Flips  []struct {
				ID string `json:"decision_id"`
			}
		}
		if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != 0 {
			t.Fatalf("%s: exit %d, %v: %s", args, r.code, err, r.err)
		}
		var got []string
		for _, s := range out.States {
			got = append(got, s.Path)
		}
		for _, f := range out.Flips {
			got = append(got, f.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// TestFlips_Pages follows the next of each page, which tells a program that there may be more.
func TestFlips_Pages(t *testing.T) {
	t.Parallel()
	sharded, _, _ := statesInShards()
	overDesk := &world{states: statesKept()}
	overDesk.overDesk(t, "auditor")
	for name, w := range map[string]*world{"database": {states: statesKept()}, "desk": overDesk, "shards": sharded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want, got []string
			type page struct {
				Items []struct {
					Shard string
					ID    int64 `json:"flip_id"`
				}
				Next string
			}
			ask := func(args ...string) (p page, ids []string) {
				r := w.call(append([]string{"flips", "-o", "json"}, args...)...)
				if err := json.Unmarshal([]byte(r.out), &p); err != nil || r.code != 0 {
					t.Fatalf("%v: exit %d, %v: %s%s", args, r.code, err, r.out, r.err)
				}
				for _, f := range p.Items {
					ids = append(ids, fmt.Sprint(f.Shard, f.ID))
				}
				if said := strings.Contains(r.err, "there may be more: --after "+p.Next); said != (p.Next != "") {
					t.Errorf("%v: next %q, %s", args, p.Next, r.err)
				}
				return p, ids
			}
			if all, ids := ask(); all.Next == "" {
				want = ids
			}
			next := ""
			for {
				args := []string{"-n", "1"}
				if next != "" {
					args = append(args, "--after", next)
				}
				p, ids := ask(args...)
				got = append(got, ids...)
				if next = p.Next; next == "" || len(got) > 2*len(want) {
					break
				}
			}
			if len(want) < 3 || !slices.Equal(got, want) {
				t.Errorf("pages %v, want %v", got, want)
			}
		})
	}
	for _, args := range []string{"--after=", "--after x", "--after 0", "--after -1", "--after a=", "--after 7 -f"} {
		if r := (&world{states: statesKept()}).call(append([]string{"flips"}, strings.Fields(args)...)...); r.code != 2 || !strings.Contains(r.err, "--after") {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
	if r := (&world{states: statesKept()}).call("flips", "--after", "a=7"); r.code != 2 {
		t.Errorf("places without shards: exit %d, %s", r.code, r.err)
	}
	if w, _, _ := statesInShards(); w.call("flips", "--after", "7").code != 2 {
		t.Error("a number with shards is taken")
	}
}

func TestStates_NoneOfThem(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"state carol": "has no state; subjects are found by *=input:/user", "state alice --path nowhere": "has no state"} {
		if r := (&world{states: statesKept()}).call(strings.Fields(args)...); r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
	for _, args := range []string{"state alice", "flips", "flips -f"} {
		if r := (&world{}).call(strings.Fields(args)...); r.code != 1 || !strings.Contains(r.err, "DOCKET_STATES=true") {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
	failing := statesKept()
	failing.Fail(errors.New("broken"))
	for _, args := range []string{"state alice", "flips", "flips -f"} {
		if r := (&world{states: failing}).call(strings.Fields(args)...); r.code != 1 || !strings.Contains(r.err, "broken") {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
}

func TestStates_WrongUse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"state": "give a subject", "state a b": "one too many", "state alice -n 0": "--limit", "state alice --path ''": "--path", "flips x": "unexpected", "flips -n 0": "--limit", "flips -n 1001": "--limit",
		"flips --every 1s": "needs --follow", "flips -f --every 1ms": "100ms or more", "flips --subject ''": "--subject", "flips --since gestern": "--since",
	} {
		r := (&world{states: statesKept()}).call(strings.Fields(strings.ReplaceAll(args, "''", ""))...)
		if strings.Contains(args, "''") {
			r = (&world{states: statesKept()}).call(append(strings.Fields(strings.ReplaceAll(args, "''", "")), "")...)
		}
		if r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
}

// Following prints the flips that are there, then each new one once, as a line of JSON.
func TestFlips_Followed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := statesKept()
		w := &world{states: s}
		done := make(chan result, 1)
		go func() { done <- w.call("flips", "-f", "--json", "-n", "1") }()
		for n := range 3 {
			time.Sleep(10 * time.Second)
			s.Note(state.Flip{ID: int64(10 + n), Key: state.Key{Subject: "alice", Path: "p"}, Was: verdict.Allowed, Verdict: verdict.Denied, Version: state.Version{Time: now, ID: fmt.Sprint("new", n)}})
		}
		time.Sleep(10 * time.Second)
		s.Fail(errors.New("no right"))
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
		if want := "d9 new0 new1 new2"; r.code != 1 || strings.Join(got, " ") != want || !strings.Contains(r.err, "no right") {
			t.Errorf("exit %d, %q, want %q: %s", r.code, got, want, r.err)
		}
	})
}
