package sharded_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/record/subject"
	"docket/internal/testkit/readertest"
)

var byHost = subject.Spec{Kind: subject.RequestedByHost}

// host is a decision of one host and path.
func host(id string, second int, allowed bool) []byte {
	at := began.Add(time.Duration(second) * time.Second)
	return fmt.Appendf(nil, `{"decision_id":%q,"timestamp":%q,"path":"p/allow","requested_by":"10.0.0.7:1","result":%t}`, id, at.Format(time.RFC3339), allowed)
}

// TestWhy_SameTimeLikeOneStore explains decisions of few times in several shards as one store with all of them does.
func TestWhy_SameTimeLikeOneStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		one, stores := &readertest.Store{}, []*readertest.Store{{}, {}, {}}
		var shards []sharded.Shard
		for i, s := range stores {
			s.Part = rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "part")
			shards = append(shards, sharded.Shard{Name: string(rune('a' + i)), Store: s})
		}
		all := sharded.New(shards...)
		n := rapid.IntRange(1, 9).Draw(rt, "n")
		for i := range n {
			raw := host(fmt.Sprint("d", i), rapid.IntRange(0, 2).Draw(rt, "second"), rapid.Bool().Draw(rt, "allowed"))
			for _, s := range []*readertest.Store{one, stores[rapid.IntRange(0, 2).Draw(rt, "shard")]} {
				if err := s.AddRaw(raw); err != nil {
					rt.Fatal(err)
				}
			}
		}
		q := reader.Question{Subject: byHost, Neighbours: rapid.IntRange(0, 3).Draw(rt, "neighbours"), SameInput: true}
		for i := range n {
			var told [2]reader.Explanation
			for k, store := range []reader.Store{one, all} {
				found, err := store.ByID(t.Context(), fmt.Sprint("d", i))
				if err != nil || len(found) != 1 {
					rt.Fatalf("%d decisions, %v", len(found), err)
				}
				if told[k], err = reader.Why(t.Context(), store, found[0], q); err != nil {
					rt.Fatal(err)
				}
			}
			if diff := cmp.Diff(told[0], told[1]); diff != "" {
				rt.Fatalf("d%d: -one store +shards:\n%s", i, diff)
			}
		}
	})
}

// TestCursorAt_WithoutShard begins behind an identity in all shards, and reads none of its time again.
func TestCursorAt_WithoutShard(t *testing.T) {
	t.Parallel()
	stores := []*readertest.Store{{}, {}}
	for i := range 40 {
		if err := stores[i%2].AddRaw(host(fmt.Sprintf("d%02d", i), 1, true)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stores[1].AddRaw(host("d20", 1, true)); err != nil { // both have it
		t.Fatal(err)
	}
	all := sharded.New(sharded.Shard{Name: "a", Store: stores[0]}, sharded.Shard{Name: "b", Store: stores[1]})
	for oldest, want := range map[bool][]string{true: {"d21", "d22"}, false: {"d19", "d18"}} {
		before := len(stores[0].Asked()) + len(stores[1].Asked())
		at := reader.Spot{Time: began.Add(time.Second), ID: "d20"}
		found, err := all.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 2, Oldest: oldest, After: reader.CursorAt(all, at, "", oldest)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range found.Decisions {
			got = append(got, d.ID)
		}
		if n := len(stores[0].Asked()) + len(stores[1].Asked()) - before; !slices.Equal(got, want) || n != 2 {
			t.Errorf("oldest %t: %q after %d requests", oldest, got, n)
		}
	}
}
