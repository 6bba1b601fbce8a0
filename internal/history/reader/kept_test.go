package reader_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/record/subject"
	"docket/internal/testkit/readertest"
)

// keeping is a store with the states of its decisions, in the order in which they were stored.
type keeping struct {
	*readertest.Store
	states map[state.Key]state.State
	by     string
	asked  int
	mark   time.Time
	stored time.Time // of all decisions
	err    error
}

// keptMark is how far the states have come, two minutes before the time of the question.
var keptMark = time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)

func (k *keeping) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	all, err := k.Store.ByID(ctx, id)
	for i := range all {
		if !k.stored.IsZero() {
			all[i].StoredAt = k.stored
		}
	}
	return all, err
}

func (k *keeping) State(_ context.Context, by string, key state.Key) (*state.State, time.Time, error) {
	k.asked++
	s, there := k.states[key]
	if !there || by != k.by || k.err != nil {
		return nil, time.Time{}, k.err
	}
	return &s, k.mark, nil
}

var byUser = reader.Question{Subject: subject.Spec{Kind: subject.Input, Pointer: "/user"}, Now: func() time.Time { return keptMark.Add(2 * time.Minute) }}

// keep stores decisions of alice with these times, in minutes, and results.
func keep(t testing.TB, minutes []int, results []bool) *keeping {
	t.Helper()
	k := &keeping{Store: &readertest.Store{}, states: map[state.Key]state.State{}, by: byUser.SubjectsBy(), mark: keptMark}
	f := state.New(nil, 9)
	for i, minute := range minutes {
		at := time.Date(2026, 11, 21, 10, minute, 0, 0, time.UTC)
		if err := k.AddRaw(fmt.Appendf(nil, `{"decision_id":"d-%d","timestamp":%q,"path":"p/allow","input":{"user":"alice"},"result":%v}`, i, at.Format(time.RFC3339), results[i])); err != nil {
			t.Fatal(err)
		}
		v := reader.Denied
		if results[i] {
			v = reader.Allowed
		}
		f.Add(&state.Decision{Key: state.Key{Subject: "alice", Path: "p/allow"}, Version: state.Version{Time: at, ID: fmt.Sprint("d-", i)}, Verdict: v, StoredAt: at})
	}
	all, _ := f.Changed()
	for _, s := range all {
		k.states[s.Key] = s
	}
	return k
}

func explained(t testing.TB, store reader.Store, id string, q reader.Question) reader.Explanation {
	t.Helper()
	found, err := store.ByID(context.Background(), id)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v", id, err)
	}
	x, err := reader.Why(context.Background(), store, found[0], q)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The state gives the same answer as the search, or none, in any order of storing. Several decisions have the same time.
func TestKept_SameAsTheSearch(t *testing.T) {
	t.Parallel()
	fromState := 0
	rapid.Check(t, func(rt *rapid.T) {
		n, atOnce := rapid.IntRange(1, 12).Draw(rt, "n"), rapid.IntRange(1, 3).Draw(rt, "at once")
		minutes := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for i := range n {
				if !yield(i / atOnce) {
					return
				}
			}
		})).Draw(rt, "minutes")
		k := keep(t, minutes, rapid.SliceOfN(rapid.Bool(), n, n).Draw(rt, "results"))
		for i := range n {
			id := fmt.Sprint("d-", i)
			got, want := explained(t, k, id, byUser), explained(t, k.Store, id, byUser)
			if strings.HasPrefix(got.Since.Searched, "the state") {
				fromState++
			}
			got.Since.Searched = want.Since.Searched
			if diff := cmp.Diff(want.Since, got.Since); diff != "" {
				rt.Fatalf("%s: -searched +kept:\n%s", id, diff)
			}
		}
	})
	if fromState < 50 {
		t.Errorf("only %d answers are from a state", fromState)
	}
}

func TestKept_NoSearchForTheTurn(t *testing.T) {
	t.Parallel()
	k := keep(t, []int{0, 1, 2, 3}, []bool{true, true, false, false})
	before := len(k.Asked())
	x := explained(t, k, "d-3", byUser)
	if x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "d-1" || x.Since.FirstID != "d-2" || len(k.Asked()) != before {
		t.Errorf("%+v after %d searches", x.Since, len(k.Asked())-before)
	}
	if want := "the state of this subject and path, with the decisions stored before 2026-11-21T13:00:00Z"; x.Since.Searched != want {
		t.Errorf("searched %q", x.Since.Searched)
	}
}

func TestKept_SearchWhereItCannotAnswer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*keeping, *reader.Question){
		"other settings": func(_ *keeping, q *reader.Question) {
			q.Extractors, _ = reader.ParseExtractors([]string{"x=subject:/user"})
		},
		"late": func(k *keeping, _ *reader.Question) {
			for key, s := range k.states {
				s.Late = 1
				k.states[key] = s
			}
		},
		"archived": func(k *keeping, _ *reader.Question) {
			for key, s := range k.states {
				s.Before = &state.Before{Verdict: reader.Allowed, Version: state.Version{ID: "gone", Time: s.Before.Time}}
				k.states[key] = s
			}
		},
		"the states are an hour behind": func(k *keeping, _ *reader.Question) { k.mark = k.mark.Add(-time.Hour) },
		"stored after the states' mark": func(k *keeping, _ *reader.Question) {
			k.stored = k.mark
		},
		"no right": func(k *keeping, _ *reader.Question) { k.err = errors.New("permission denied") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, q := keep(t, []int{0, 1, 2}, []bool{true, false, false}), byUser
			change(k, &q)
			x := explained(t, k, "d-2", q)
			if x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "d-0" || strings.HasPrefix(x.Since.Searched, "the state") || k.asked != 1 {
				t.Errorf("%+v", x.Since)
			}
		})
	}
}
