package state

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"docket/internal/record/verdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func decided(subject string, at int, id string, v verdict.Verdict, revision string) Decision {
	ts := noon.Add(time.Duration(at) * time.Second)
	return Decision{Key: Key{subject, "a/b"}, Version: Version{ts, id}, Verdict: v, Revision: revision, StoredAt: ts}
}

// some draws decisions with few subjects, times, verdicts and revisions. No two have the same time and id.
func some(t *rapid.T, most int) []Decision {
	n := rapid.IntRange(0, most).Draw(t, "n")
	var all []Decision
	for i := range n {
		d := decided(rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "subject"), rapid.IntRange(0, 9).Draw(t, "at"), fmt.Sprint(i),
			rapid.SampledFrom([]verdict.Verdict{verdict.Allowed, verdict.Denied, verdict.Error}).Draw(t, "verdict"), rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "revision"))
		d.StoredAt = noon.Add(time.Duration(i) * time.Minute)
		all = append(all, d)
	}
	return all
}

// foldedIn folds decisions in batches of one size, as the desk does: each batch reads the states that are known.
func foldedIn(batch int, all []Decision) (map[Key]State, []Flip, Counts) {
	table := map[Key]State{}
	var flips []Flip
	var counts Counts
	for part := range slices.Chunk(all, batch) {
		var known []State
		asked := map[Key]bool{}
		for _, d := range part {
			if s, there := table[d.Key]; there && !asked[d.Key] {
				known = append(known, s)
			}
			asked[d.Key] = true
		}
		f := New(known, 1<<20)
		for i := range part {
			f.Add(&part[i])
		}
		changed, _ := f.Changed()
		for _, s := range changed {
			table[s.Key] = s
		}
		flips = append(flips, f.Flips...)
		counts.Add(f.Counts)
	}
	return table, flips, counts
}

// lasting is the part of a state that no order changes.
type lasting struct {
	Verdict   verdict.Verdict
	Revision  string
	Hash      Hash
	Version   Version
	LastSeen  time.Time
	Decisions int64
}

func lastingOf(table map[Key]State) map[Key]lasting {
	out := map[Key]lasting{}
	for k, s := range table {
		out[k] = lasting{s.Verdict, s.Revision, s.Hash, s.Version, s.LastSeen, s.Decisions}
	}
	return out
}

func TestFold_AnyOrderSameState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := some(t, 30)
		want, _, _ := foldedIn(1, slices.SortedFunc(slices.Values(all), func(a, b Decision) int { return a.Version.Compare(b.Version) }))
		got, _, _ := foldedIn(rapid.IntRange(1, 31).Draw(t, "batch"), rapid.Permutation(all).Draw(t, "order"))
		if diff := cmp.Diff(lastingOf(want), lastingOf(got)); diff != "" {
			t.Fatalf("-in order +in another:\n%s", diff)
		}
	})
}

func TestFold_AnyBatchSameResult(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := some(t, 30)
		want, flips, counts := foldedIn(len(all)+1, all)
		got, gotFlips, gotCounts := foldedIn(rapid.IntRange(1, 31).Draw(t, "batch"), all)
		if diff := cmp.Diff(want, got) + cmp.Diff(flips, gotFlips) + cmp.Diff(counts, gotCounts); diff != "" {
			t.Fatalf("-one batch +several:\n%s", diff)
		}
	})
}

// A decision that comes again changes nothing but, where it is none that the state names, the count.
func TestFold_RepeatsKeepTheAnswer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := some(t, 20)
		want, _, _ := foldedIn(1, all)
		twice := slices.Clone(all)
		if len(all) > 0 {
			twice = append(twice, rapid.SliceOf(rapid.SampledFrom(all)).Draw(t, "again")...)
		}
		got, _, _ := foldedIn(rapid.IntRange(1, 40).Draw(t, "batch"), twice)
		for _, table := range []map[Key]State{want, got} {
			for k, s := range table {
				s.Decisions, s.Late = 0, 0
				table[k] = s
			}
		}
		if diff := cmp.Diff(lastingOf(want), lastingOf(got)); diff != "" {
			t.Fatalf("-once +again:\n%s", diff)
		}
	})
}

// A decision that is stored again after its day left the table changes nothing at all, even in a state that is marked.
func TestFold_LeftDayAgainChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := some(t, 20)
		if len(all) == 0 {
			return
		}
		want, flips, _ := foldedIn(3, all)
		again := rapid.SliceOf(rapid.SampledFrom(all)).Draw(t, "again")
		for i := range again {
			again[i].Left = true
		}
		got, gotFlips, _ := foldedIn(3, append(slices.Clone(all), again...))
		if diff := cmp.Diff(want, got) + cmp.Diff(flips, gotFlips); diff != "" {
			t.Fatalf("-once +again:\n%s", diff)
		}
	})
}

// A state was removed as idle, and began again. Its day left, and an older decision of it is stored again: its flip may
// have been noted before.
func TestApply_LeftDayNotesNoFlip(t *testing.T) {
	t.Parallel()
	older, newer := decided("alice", 2, "2", verdict.Denied, "r1"), decided("alice", 3, "3", verdict.Allowed, "r1")
	older.Left = true
	var s State
	s.Apply(&newer)
	if effect, flip := s.Apply(&older); effect != Obsolete || flip != nil || s.Decisions != 1 {
		t.Errorf("effect %d, flip %+v, %d decisions", effect, flip, s.Decisions)
	}
	if s.Before == nil || s.Before.Version != older.Version || s.Doubtful() {
		t.Errorf("before %+v, late %d", s.Before, s.Late)
	}
}

// A decision of a day that left may be new. Then it moves the state as each other does, but counts for no denials and rates.
func TestFold_LeftDayIsNoNews(t *testing.T) {
	t.Parallel()
	f := New(nil, 9)
	for i, v := range []verdict.Verdict{verdict.Allowed, verdict.Denied} {
		d := decided("alice", i, "x", v, "r1")
		d.Left = true
		f.Add(&d)
	}
	states, _ := f.Changed()
	if len(states) != 1 || states[0].Verdict != verdict.Denied || states[0].Decisions != 2 || len(f.Flips) != 1 {
		t.Errorf("%+v, flips %+v", states, f.Flips)
	}
	if denials, rates := f.Denials(), f.Rates(); len(denials)+len(rates) > 0 {
		t.Errorf("denials %+v, rates %+v", denials, rates)
	}
}

func TestApply_NewestAgainChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := some(t, 20)
		table, _, _ := foldedIn(3, all)
		for i := range all {
			s := table[all[i].Key]
			was := s
			if all[i].Version != s.Version {
				continue
			}
			if effect, flip := s.Apply(&all[i]); effect != Repeated || flip != nil {
				t.Fatalf("effect %d, flip %+v", effect, flip)
			}
			if diff := cmp.Diff(was, s); diff != "" {
				t.Fatalf("-before +after:\n%s", diff)
			}
		}
	})
}

// sinceOf reads since and before from all decisions of a subject, in the order of their versions.
func sinceOf(all []Decision, of Key) (since Version, before *Before) {
	var last *Decision
	for _, d := range slices.SortedFunc(slices.Values(all), func(a, b Decision) int { return a.Version.Compare(b.Version) }) {
		if d.Key != of {
			continue
		}
		switch {
		case last == nil:
			since = d.Version
		case last.Verdict != d.Verdict:
			since, before = d.Version, &Before{last.Verdict, last.Version}
		}
		last = &d
	}
	return since, before
}

// Whatever the order of storing, since and the decision before it are right unless the state says that they may not be.
func TestFold_SinceIsTrueOrMarked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := some(t, 30)
		table, _, _ := foldedIn(rapid.IntRange(1, 31).Draw(t, "batch"), all)
		for k, s := range table {
			since, before := sinceOf(all, k)
			if s.Late > 0 {
				continue
			}
			if diff := cmp.Diff(since, s.Since) + cmp.Diff(before, s.Before); diff != "" {
				t.Fatalf("%v: -true +stored:\n%s", k, diff)
			}
		}
	})
}

// Where decisions are stored in the order of their versions, each change of verdict is one flip, and nothing is late.
func TestFold_InOrderEachChangeIsAFlip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := slices.SortedFunc(slices.Values(some(t, 30)), func(a, b Decision) int { return a.Version.Compare(b.Version) })
		table, flips, counts := foldedIn(rapid.IntRange(1, 31).Draw(t, "batch"), all)
		last := map[Key]Decision{}
		var want []Flip
		for _, d := range all {
			if was, there := last[d.Key]; there && was.Verdict != d.Verdict {
				want = append(want, Flip{Key: d.Key, Was: was.Verdict, Verdict: d.Verdict, WasRevision: was.Revision, Revision: d.Revision, Version: d.Version, WasVersion: was.Version, StoredAt: d.StoredAt})
			}
			last[d.Key] = d
		}
		if diff := cmp.Diff(want, flips); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		if counts.Obsolete+counts.Repeated != 0 || counts.Flipped != int64(len(want)) {
			t.Fatalf("%+v", counts)
		}
		for k, s := range table {
			if s.Late != 0 {
				t.Fatalf("%v is late", k)
			}
		}
	})
}

// The seed's sixth scenario: an answer that does not change is a light update each time, and no flip.
func TestFold_SameAnswerNoFlip(t *testing.T) {
	t.Parallel()
	f := New(nil, 1)
	const n = 100_000
	for i := range n {
		d := decided("alice", i, "x", verdict.Denied, "r1")
		f.Add(&d)
	}
	if want := (Counts{Began: 1, Same: n - 1}); f.Counts != want || len(f.Flips) > 0 {
		t.Errorf("%+v and %d flips", f.Counts, len(f.Flips))
	}
	states, added := f.Changed()
	if len(states) != 1 || added != 1 || states[0].Decisions != n || states[0].Since.Time != noon {
		t.Errorf("%d added: %+v", added, states)
	}
}

func TestFold_EqualTimesByID(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"a", "b"}, {"b", "a"}} {
		f := New(nil, 9)
		for _, id := range ids {
			d := decided("alice", 0, id, map[string]verdict.Verdict{"a": verdict.Allowed, "b": verdict.Denied}[id], "")
			f.Add(&d)
		}
		if states, _ := f.Changed(); states[0].Verdict != verdict.Denied || states[0].Version.ID != "b" {
			t.Errorf("%q: %+v", ids, states)
		}
	}
}

func TestApply_LateDecisionIsMarked(t *testing.T) {
	t.Parallel()
	var s State
	apply := func(at int, v verdict.Verdict) (Effect, *Flip) {
		d := decided("alice", at, "x", v, "r1")
		return s.Apply(&d)
	}
	apply(10, verdict.Allowed)
	apply(30, verdict.Allowed)
	effect, flip := apply(20, verdict.Denied)
	if effect != Obsolete || flip == nil || !flip.Late || flip.Was != verdict.Allowed || flip.Verdict != verdict.Denied || s.Late != 1 || s.Verdict != verdict.Allowed {
		t.Fatalf("effect %d, flip %+v, state %+v", effect, flip, s)
	}
	if effect, flip = apply(40, verdict.Denied); effect != Flipped || flip.Late || s.Late != 0 || s.Since.Time != noon.Add(40*time.Second) {
		t.Fatalf("effect %d, flip %+v, state %+v", effect, flip, s)
	}
}

// The verdict and the revision of the other side of a late flip are those of one decision.
func TestApply_LateFlipNamesOneDecision(t *testing.T) {
	t.Parallel()
	for at, name := range map[int]string{5: "before the verdict began", 20: "after it"} {
		var s State
		for _, d := range []Decision{decided("alice", 10, "first", verdict.Allowed, "r1"), decided("alice", 30, "newest", verdict.Allowed, "r2")} {
			s.Apply(&d)
		}
		d := decided("alice", at, "late", verdict.Denied, "r0")
		_, flip := s.Apply(&d)
		if flip == nil || !flip.Late || flip.WasVersion.ID != "newest" || flip.WasRevision != "r2" || flip.Revision != "r0" {
			t.Errorf("%s: %+v", name, flip)
		}
	}
}

func TestApply_ReasonsAndRevisionKeepSince(t *testing.T) {
	t.Parallel()
	first := decided("alice", 0, "x", verdict.Denied, "r1")
	for i, change := range []func(*Decision){func(d *Decision) { d.Revision = "r2" }, func(d *Decision) { d.Answer = "other reasons" }} {
		var s State
		s.Apply(&first)
		d := first
		d.Time = noon.Add(time.Duration(i+1) * time.Second)
		change(&d)
		hash := s.Hash
		if effect, flip := s.Apply(&d); effect != Changed || flip != nil || s.Since != first.Version || s.Hash == hash || s.Version != d.Version {
			t.Errorf("effect %d, flip %+v, state %+v", effect, flip, s)
		}
	}
}

func TestFold_NoRoomForInventedSubjects(t *testing.T) {
	t.Parallel()
	known := State{Key: Key{"alice", "a/b"}, Verdict: verdict.Allowed, Decisions: 1, Version: Version{noon, "x"}, Since: Version{noon, "x"}}
	f := New([]State{known}, 2)
	for i := range 5 {
		d := decided(fmt.Sprint("invented", i), i, "x", verdict.Allowed, "")
		f.Add(&d)
	}
	d := decided("alice", 9, "y", verdict.Denied, "")
	f.Add(&d)
	states, added := f.Changed()
	if added != 2 || len(states) != 3 || f.Counts.Full != 3 || f.Counts.Flipped != 1 {
		t.Errorf("%d added, %d states, %+v", added, len(states), f.Counts)
	}
}

func TestFold_RatesAndDenialsOfABatch(t *testing.T) {
	t.Parallel()
	f := New(nil, 9)
	for i, v := range []verdict.Verdict{verdict.Allowed, verdict.Denied, verdict.Denied, verdict.Error} {
		d := decided("alice", i, "x", v, "r1")
		d.StoredAt = noon.Add(time.Duration(i) * time.Minute)
		f.Add(&d)
	}
	want := []Rate{{PathRevision{"a/b", "r1"}, noon, noon.Add(2 * time.Minute), 1, 2}}
	if diff := cmp.Diff(want, f.Rates()) + cmp.Diff([]Denial{{"a/b", Version{noon.Add(time.Second), "x"}, noon.Add(time.Minute)}}, f.Denials()); diff != "" {
		t.Error(diff)
	}
}
