package state

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"docket/internal/record/verdict"
)

func rowOf(d *Decision) Row {
	return Row{
		Subject: []byte(d.Subject), Path: []byte(d.Path), ID: []byte(d.ID), Time: d.Time.UnixMicro(), StoredAt: d.StoredAt.UnixMicro(),
		Said: &Said{d.Verdict, d.Revision, d.Hash()},
	}
}

// result is all that a fold says.
type result struct {
	States  []State
	Added   int64
	Flips   []Flip
	Counts  Counts
	Denials []Denial
	Rates   []Rate
}

func resultOf(f *Fold) result {
	states, added := f.Changed()
	return result{states, added, f.Flips, f.Counts, f.Denials(), f.Rates()}
}

// Decisions of a span come in any order. They are folded as in the order of storing, even where keys find no room.
func TestFold_AnyOrderWithinSpan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := some(t, 30)
		for i := range all {
			all[i].StoredAt = noon.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "stored")) * time.Minute)
			all[i].Path = rapid.SampledFrom([]string{"a/b", "a/c"}).Draw(t, "path")
		}
		slices.SortFunc(all, func(a, b Decision) int {
			if n := a.StoredAt.Compare(b.StoredAt); n != 0 {
				return n
			}
			return a.Version.Compare(b.Version)
		})
		known := []State{{Key: Key{"bob", "a/b"}, Verdict: verdict.Allowed, Decisions: 1, LastSeen: noon, Version: Version{noon, "0"}, Since: Version{noon, "0"}}}
		room := int64(rapid.IntRange(0, 4).Draw(t, "room"))
		want := New(known, room)
		for i := range all {
			want.Add(&all[i])
		}
		got := New(known, room)
		for at := 0; at < len(all); {
			end := all[at].StoredAt.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "span")) * time.Minute)
			to := at
			for to < len(all) && all[to].StoredAt.Before(end) {
				to++
			}
			if rapid.Bool().Draw(t, "twice") { // the first part of a span that was too long
				for i := range all[at:to] {
					row := rowOf(&all[at+i])
					got.Gather(row)
				}
				got.Forget()
			}
			for _, d := range rapid.Permutation(all[at:to]).Draw(t, "order") {
				got.Gather(rowOf(&d))
			}
			got.Settle()
			at = to
		}
		if diff := cmp.Diff(resultOf(want), resultOf(got)); diff != "" {
			t.Fatalf("-one by one +in spans:\n%s", diff)
		}
	})
}

// A fold keeps nothing of the bytes of a row, as these are those of the next row then.
func TestGather_KeepsNoBytes(t *testing.T) {
	t.Parallel()
	f := New(nil, 9)
	d := decided("alice", 0, "x", verdict.Denied, "r1")
	row := rowOf(&d)
	f.Gather(row)
	for _, text := range [][]byte{row.Subject, row.Path, row.ID} {
		for i := range text {
			text[i] = '!'
		}
	}
	f.Settle()
	states, _ := f.Changed()
	if len(states) != 1 || states[0].Key != d.Key || states[0].Version != d.Version || f.Denials()[0].ID != "x" {
		t.Errorf("%+v", states)
	}
}

func TestUnknown_EachKeyOnce(t *testing.T) {
	t.Parallel()
	f := New([]State{{Key: Key{"bob", "a/b"}, Decisions: 1}}, 9)
	for _, who := range []string{"bob", "alice", "alice"} {
		d := decided(who, 0, "x", verdict.Denied, "r1")
		f.Gather(rowOf(&d))
	}
	if keys := f.Unknown(); !slices.Equal(keys, []Key{{"alice", "a/b"}}) {
		t.Errorf("%v", keys)
	}
	if keys := f.Unknown(); len(keys) > 0 || f.Size() != 2 {
		t.Errorf("%v again, %d keys", keys, f.Size())
	}
}

// A state of which only the newest decision changed is one that the table updates in few columns.
func TestChanges_ByWhatChanged(t *testing.T) {
	t.Parallel()
	first := decided("alice", 0, "a", verdict.Allowed, "r1")
	table, _, _ := foldedIn(9, []Decision{first})
	for name, test := range map[string]struct {
		next        Decision
		seen, moved int
	}{
		"same answer":    {decided("alice", 1, "b", verdict.Allowed, "r1"), 1, 0},
		"other revision": {decided("alice", 1, "b", verdict.Allowed, "r2"), 0, 1},
		"flip":           {decided("alice", 1, "b", verdict.Denied, "r1"), 0, 1},
		"late":           {decided("alice", -1, "b", verdict.Denied, "r1"), 0, 1},
		"again":          {first, 0, 0},
	} {
		f := New([]State{table[first.Key]}, 9)
		f.Add(&test.next)
		if c := f.Changes(); len(c.New) != 0 || len(c.Seen) != test.seen || len(c.Moved) != test.moved {
			t.Errorf("%s: %d new, %d seen, %d moved", name, len(c.New), len(c.Seen), len(c.Moved))
		}
	}
}

// A decision without a state counts for the alerts, as often as its span does.
func TestGather_WithoutAStateCounts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MostKey+1)
	for name, test := range map[string]struct {
		subject, path, skip string
		ahead               time.Duration
		counts              bool
	}{
		"no subject":   {"", "a/b", SkipNoSubject, 0, true},
		"long subject": {long, "a/b", SkipTooLong, 0, true},
		"no path":      {"alice", "", SkipNoPath, 0, false},
		"long path":    {"alice", long, SkipTooLong, 0, false},
		"far ahead":    {"alice", "a/b", SkipAhead, MostAhead + time.Microsecond, true},
	} {
		f := New(nil, 0)
		d := decided(test.subject, 0, "x", verdict.Denied, "r1")
		d.Path, d.StoredAt = test.path, d.Time.Add(-test.ahead)
		f.Gather(rowOf(&d))
		f.Forget()
		if skip := f.Gather(rowOf(&d)); skip != test.skip {
			t.Errorf("%s: skipped as %q", name, skip)
		}
		f.Settle()
		want := result{}
		if test.counts {
			want.Denials = []Denial{{test.path, d.Version, d.StoredAt.UTC()}}
			want.Rates = []Rate{{PathRevision{test.path, "r1"}, d.StoredAt.UTC(), d.StoredAt.UTC(), 0, 1}}
		}
		if diff := cmp.Diff(want, resultOf(f)); diff != "" || len(f.Unknown()) > 0 {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// A clock that is far ahead moves no state. Whatever the order, the state is that of the other decisions.
func TestFold_AheadMovesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all, fair []Decision
		for _, d := range some(t, 30) {
			if rapid.Bool().Draw(t, "ahead") {
				d.Time = d.StoredAt.Add(MostAhead + time.Duration(rapid.Int64Range(1, int64(100*365*24*time.Hour/time.Microsecond)).Draw(t, "by"))*time.Microsecond)
			} else {
				fair = append(fair, d)
			}
			all = append(all, d)
		}
		want, _, _ := foldedIn(1, fair)
		got, _, _ := foldedIn(rapid.IntRange(1, 31).Draw(t, "batch"), rapid.Permutation(all).Draw(t, "order"))
		if diff := cmp.Diff(lastingOf(want), lastingOf(got)); diff != "" {
			t.Fatalf("-without +with clocks that are ahead:\n%s", diff)
		}
	})
}

// A clock that is as far ahead as it may be moves the state.
func TestFold_LittleAheadMoves(t *testing.T) {
	t.Parallel()
	d := decided("alice", 0, "x", verdict.Denied, "r1")
	d.StoredAt = d.Time.Add(-MostAhead)
	f := New(nil, 9)
	f.Add(&d)
	if states, _ := f.Changed(); len(states) != 1 || states[0].Version != d.Version {
		t.Errorf("%+v", states)
	}
}
