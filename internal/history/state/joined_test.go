package state

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"docket/internal/record/verdict"
)

// divided gives each decision to one of three shards. They store and follow their own in any order.
func divided(t *rapid.T, all []Decision) (parts map[Key][]Part) {
	of := make([][]Decision, 3)
	for _, d := range rapid.Permutation(all).Draw(t, "order") {
		i := rapid.IntRange(0, 2).Draw(t, "shard")
		of[i] = append(of[i], d)
	}
	parts = map[Key][]Part{}
	for i, own := range of {
		table, _, _ := foldedIn(rapid.IntRange(1, 5).Draw(t, "batch"), own)
		for k, s := range table {
			parts[k] = append(parts[k], Part{Shard: fmt.Sprint(i), State: s})
		}
	}
	return parts
}

// inTime is the state of a table that stored all decisions in the order of OPA's clocks, which leaves no doubt.
func inTime(all []Decision) map[Key]State {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Decision) int { return a.Compare(b.Version) })
	table, _, _ := foldedIn(3, sorted)
	return table
}

// States of shards join to the state of one table, except that since may be given too late, and then says so.
func TestJoin_LikeOneTable(t *testing.T) {
	t.Parallel()
	exact, late := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		all := some(t, 30)
		one := inTime(all)
		joined := map[Key]State{}
		for k, parts := range divided(t, all) {
			joined[k] = Join(parts)
		}
		if diff := cmp.Diff(lastingOf(one), lastingOf(joined)); diff != "" {
			t.Fatal(diff)
		}
		for k, got := range joined {
			want := one[k]
			if got.Late > 0 {
				late++
				continue
			}
			if diff := cmp.Diff(want.Before, got.Before); diff != "" {
				t.Fatalf("%v: %s", k, diff)
			}
			switch {
			case !got.SinceAtLatest && got.Since != want.Since:
				t.Fatalf("%v: since %v, want %v", k, got.Since, want.Since)
			case got.SinceAtLatest && (got.Since.Compare(want.Since) < 0 || got.Since.Compare(got.Version) > 0):
				t.Fatalf("%v: at the latest since %v, and it is since %v", k, got.Since, want.Since)
			}
			if !got.Doubtful() {
				exact++
			}
		}
	})
	if exact == 0 || late == 0 {
		t.Errorf("%d exact states and %d with late decisions: the test sees one kind only", exact, late)
	}
}

// A state of one shard alone is that shard's.
func TestJoin_OneShard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table, _, _ := foldedIn(2, some(t, 20))
		for _, s := range table {
			got := Join([]Part{{"a", s}})
			got.Shards = nil
			if diff := cmp.Diff(s, got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// A decision that two shards stored differently leaves no doubtless since.
func TestJoin_ConflictIsDoubtful(t *testing.T) {
	t.Parallel()
	of := func(v verdict.Verdict) (s State) {
		d := decided("alice", 1, "x", v, "r1")
		s.Apply(&d)
		return s
	}
	d, e := of(verdict.Allowed), of(verdict.Denied)
	for _, parts := range [][]Part{{{"a", d}, {"b", e}}, {{"b", e}, {"a", d}}} {
		if got := Join(parts); !got.Doubtful() || got.Verdict != parts[0].Verdict {
			t.Errorf("%+v", got)
		}
	}
}
