package reader_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"docket/internal/history/reader"
	"docket/internal/record/verdict"
	"docket/internal/testkit/readertest"
)

// timed is a decision of alice at a minute after 10:00.
type timed struct {
	id      string
	minute  int
	allowed bool
}

func (d timed) raw() []byte {
	at := time.Date(2026, 11, 21, 10, d.minute, 0, 0, time.UTC)
	return fmt.Appendf(nil, `{"decision_id":%q,"timestamp":%q,"path":"p/allow","input":{"user":"alice","n":%d},"result":%t}`, d.id, at.Format(time.RFC3339), len(d.id), d.allowed)
}

// listed is the same decision with a list for its result, so that its columns do not tell the verdict.
func (d timed) listed() []byte {
	return []byte(strings.NewReplacer(`"p/allow"`, `"p/list"`, "true", "[]", "false", `["x"]`).Replace(string(d.raw())))
}

// surrounded is what an explanation says of others.
type surrounded struct {
	Before, After    string
	Otherwise, First string
}

func surroundings(x reader.Explanation) (s surrounded) {
	ids := func(all []reader.Neighbour) string {
		var out []string
		for _, n := range all {
			out = append(out, n.DecisionID)
		}
		return strings.Join(out, " ")
	}
	s.Before, s.After, s.First = ids(x.Before), ids(x.After), x.Since.FirstID
	if x.Since.Otherwise != nil {
		s.Otherwise = x.Since.Otherwise.DecisionID
	}
	return s
}

// simply says it of decisions in the order of (ts, decision_id), read off one by one.
func simply(all []timed, of string, neighbours int) (s surrounded) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b timed) int { return cmp.Or(cmp.Compare(a.minute, b.minute), strings.Compare(a.id, b.id)) })
	place := slices.IndexFunc(all, func(d timed) bool { return d.id == of })
	var before, after []string
	for i := place - 1; i >= 0 && len(before) < neighbours; i-- {
		before = append(before, all[i].id)
	}
	for i := place + 1; i < len(all) && len(after) < neighbours; i++ {
		after = append(after, all[i].id)
	}
	s.First = of
	for i := place - 1; i >= 0; i-- {
		if all[i].allowed != all[place].allowed {
			s.Otherwise = all[i].id
			break
		}
		s.First = all[i].id
	}
	s.Before, s.After = strings.Join(before, " "), strings.Join(after, " ")
	return s
}

// TestWhy_SameTime: decisions of one time are in the order of their ids, as they are in the state.
func TestWhy_SameTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all  []timed
		of   string
		n    int
		want surrounded
	}{
		"the turn has the same time": {
			[]timed{{"z", 0, true}, {"a", 9, false}, {"b", 9, true}}, "b", 3, surrounded{"a z", "", "a", "b"},
		},
		"the turn is behind it at the same time": {
			[]timed{{"z", 0, true}, {"a", 9, false}, {"b", 9, true}}, "a", 3, surrounded{"z", "b", "z", "a"},
		},
		"without neighbours": {
			[]timed{{"z", 0, true}, {"a", 9, false}, {"b", 9, true}}, "b", 0, surrounded{"", "", "a", "b"},
		},
		"several on both sides": {
			[]timed{{"a", 9, true}, {"b", 9, false}, {"c", 9, false}, {"d", 9, true}, {"e", 9, false}, {"y", 8, true}, {"x", 10, true}}, "c", 2, surrounded{"b a", "d e", "a", "b"},
		},
		"the turn is beyond the neighbours, at the same time": {
			[]timed{{"a", 9, true}, {"b", 9, false}, {"c", 9, false}, {"d", 9, false}, {"e", 9, true}}, "d", 1, surrounded{"c", "e", "a", "b"},
		},
		"the oldest of all": {
			[]timed{{"a", 9, true}, {"b", 9, false}, {"c", 9, true}}, "a", 1, surrounded{"", "b", "", "a"},
		},
		"the newest of all": {
			[]timed{{"a", 9, true}, {"b", 9, false}, {"c", 9, true}}, "c", 3, surrounded{"b a", "", "b", "c"},
		},
		"never otherwise, and others later at the same time": {
			[]timed{{"a", 9, true}, {"b", 9, true}, {"c", 9, true}, {"d", 9, false}}, "b", 1, surrounded{"a", "c", "", "a"},
		},
		"an earlier turn at one time": {
			[]timed{{"b", 3, true}, {"a", 3, false}, {"c", 3, true}, {"d", 9, true}}, "d", 0, surrounded{"", "", "a", "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, backwards := range []bool{false, true} {
				for _, listed := range []bool{false, true} {
					all := slices.Clone(c.all)
					if backwards { // they were stored in the other order
						slices.Reverse(all)
					}
					s := &readertest.Store{}
					for _, d := range all {
						raw := d.raw()
						if listed {
							raw = d.listed()
						}
						if err := s.AddRaw(raw); err != nil {
							t.Fatal(err)
						}
					}
					q := byUser
					q.Neighbours = c.n
					if diff := gocmp.Diff(c.want, surroundings(ask(t, s, c.of, q))); diff != "" {
						t.Errorf("backwards %t, listed %t: -want +got:\n%s", backwards, listed, diff)
					}
				}
			}
		})
	}
}

// TestWhy_SameTimeAnyBatch asks for every decision of a batch with few times, also of a store with short pages.
func TestWhy_SameTimeAnyBatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := &readertest.Store{Part: rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "part")}
		listed := rapid.Bool().Draw(rt, "listed")
		var all []timed
		for i, id := range rapid.Permutation(strings.Split("abcdefghi", "")).Draw(rt, "ids")[:rapid.IntRange(1, 9).Draw(rt, "n")] {
			d := timed{id, rapid.IntRange(0, 2).Draw(rt, "minute"), rapid.Bool().Draw(rt, fmt.Sprint("allowed", i))}
			raw := d.raw()
			if listed {
				raw = d.listed()
			}
			if err := s.AddRaw(raw); err != nil {
				rt.Fatal(err)
			}
			all = append(all, d)
		}
		q := byUser
		q.Neighbours = rapid.IntRange(0, 4).Draw(rt, "neighbours")
		for _, d := range all {
			if diff := gocmp.Diff(simply(all, d.id, q.Neighbours), surroundings(explained(t, s, d.id, q))); diff != "" {
				rt.Fatalf("%s of %v: -want +got:\n%s", d.id, all, diff)
			}
		}
	})
}

// TestWhy_SameTimeSameInput: of one time, only those before in the order count for the same input.
func TestWhy_SameTimeSameInput(t *testing.T) {
	t.Parallel()
	s := &readertest.Store{}
	for _, d := range []timed{{"aa", 9, true}, {"bbb", 9, true}, {"cc", 9, false}, {"dd", 9, true}} {
		if err := s.AddRaw(d.raw()); err != nil {
			t.Fatal(err)
		}
	}
	q := byUser
	q.SameInput = true
	for _, q.Neighbours = range []int{0, 1, 3} {
		x := ask(t, s, "cc", q)
		if x.Verdict != verdict.Denied || x.Since.SameInput == nil || x.Since.SameInput.DecisionID != "aa" || x.Since.Otherwise.DecisionID != "bbb" {
			t.Errorf("%d neighbours: %+v", q.Neighbours, x.Since)
		}
	}
}

// TestWhy_SameTimeItselfGone: a decision that left the store is the first itself, and not a later one of its time.
func TestWhy_SameTimeItselfGone(t *testing.T) {
	t.Parallel()
	s, gone := &readertest.Store{}, &readertest.Store{}
	if err := errors.Join(s.AddRaw(timed{"a", 9, false}.raw(), timed{"c", 9, true}.raw()), gone.AddRaw(timed{"b", 9, true}.raw())); err != nil {
		t.Fatal(err)
	}
	found, err := gone.ByID(t.Context(), "b")
	if err != nil || len(found) != 1 {
		t.Fatal(err)
	}
	x, err := reader.Why(t.Context(), s, found[0], byUser)
	if err != nil || x.Since.Otherwise == nil || x.Since.Otherwise.DecisionID != "a" || x.Since.FirstID != "b" {
		t.Errorf("%+v, %v", x.Since, err)
	}
}

// TestWhy_SearchesHaveABound: a search from a place also has a time, so that a store leaves out the days beyond it.
func TestWhy_SearchesHaveABound(t *testing.T) {
	t.Parallel()
	s := &readertest.Store{}
	for _, d := range []timed{{"a", 3, true}, {"b", 3, true}, {"c", 9, true}, {"d", 12, false}} {
		if err := s.AddRaw(d.raw()); err != nil {
			t.Fatal(err)
		}
	}
	q := byUser
	q.Neighbours = 1
	x := ask(t, s, "c", q)
	for _, f := range s.Asked() {
		if !f.Since.Equal(x.Timestamp) && (f.Until.IsZero() || f.Until.After(x.Timestamp.Add(time.Microsecond))) {
			t.Errorf("from %v until %v", f.Since, f.Until)
		}
	}
	if n := len(s.Asked()); n != 4 {
		t.Errorf("%d searches", n)
	}
}
