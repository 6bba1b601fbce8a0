package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/testkit/readertest"
)

var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func decision(id string, second int, path string, v reader.Verdict) reader.Decision {
	at := began.Add(time.Duration(second) * time.Second)
	return reader.Decision{Row: reader.Row{ID: id, Time: at, Path: &path, Service: &path, Verdict: v, StoredAt: at}, Raw: []byte(`{}`)}
}

// split is some decisions, once in one store and once divided among three.
type split struct {
	one    *readertest.Store
	shards []*readertest.Store
	all    *sharded.Store
	of     [][]reader.Decision
}

// divided makes a split. Each id is in one shard, as records keyed by decision_id are. Times are few, so many are equal.
func divided(t *rapid.T) split {
	s := split{one: &readertest.Store{}, of: make([][]reader.Decision, 3)}
	n := rapid.IntRange(0, 40).Draw(t, "decisions")
	for i := range n {
		d := decision(fmt.Sprintf("%03d-%d", rapid.IntRange(0, 999).Draw(t, "id"), i), rapid.IntRange(0, 6).Draw(t, "second"),
			rapid.SampledFrom([]string{"a", "a/b", "c"}).Draw(t, "path"), rapid.SampledFrom([]reader.Verdict{reader.Allowed, reader.Denied}).Draw(t, "verdict"))
		d.StoredAt = began.Add(time.Duration(i) * time.Millisecond)
		of := rapid.IntRange(0, 2).Draw(t, "shard")
		s.one.Add(d)
		s.of[of] = append(s.of[of], d)
	}
	s.build()
	return s
}

func (s *split) build() {
	var parts []sharded.Shard
	for i, own := range s.of {
		store := &readertest.Store{}
		store.Add(own...)
		s.shards = append(s.shards, store)
		parts = append(parts, sharded.Shard{Name: string(rune('a' + i)), Store: store})
	}
	s.all = sharded.New(parts...)
}

// without returns a store of the decisions that one shard does not have.
func (s *split) without(i int) *readertest.Store {
	rest := &readertest.Store{}
	for n, own := range s.of {
		if n != i {
			rest.Add(own...)
		}
	}
	return rest
}

func texts(all []reader.Decision) []string {
	out := make([]string, len(all))
	for i, d := range all {
		out[i] = d.Time.Format(time.TimeOnly) + " " + d.ID
	}
	return out
}

// walk reads page after page to the end. It accepts partial answers, and returns which shards they lacked.
func walk(t *rapid.T, store reader.Store, f reader.Filter, oldest bool, limits func() int) (all []reader.Decision, missing []string) {
	after := ""
	for pages := 0; ; pages++ {
		limit := limits()
		found, err := store.Search(context.Background(), f, reader.Page{Limit: limit, After: after, Oldest: oldest, Payload: true})
		if partial := reader.AsPartial(err); partial != nil {
			missing = partial.Missing()
		} else if err != nil {
			t.Fatal(err)
		} else if missing != nil {
			t.Fatal("a page before lacks a shard, and this one does not say so")
		}
		if len(found.Decisions) > limit {
			t.Fatalf("%d decisions on a page of %d", len(found.Decisions), limit)
		}
		all = append(all, found.Decisions...)
		if after = found.Next; after == "" {
			return all, missing
		}
		if len(found.Decisions) < limit && found.Reached.IsZero() {
			t.Fatal("a short page does not say how far it came")
		}
		if pages > 400 {
			t.Fatal("the search does not come on")
		}
	}
}

func anyFilter(t *rapid.T) reader.Filter {
	var f reader.Filter
	if rapid.Bool().Draw(t, "one verdict") {
		f.Verdicts = []reader.Verdict{reader.Denied}
	}
	if rapid.Bool().Draw(t, "since") {
		f.Since = began.Add(2 * time.Second)
	}
	return f
}

// All shards together answer as one store with all decisions does, in whatever pages, and if each page of a shard ends
// early.
func TestSearch_LikeOneStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, f, oldest := divided(t), anyFilter(t), rapid.Bool().Draw(t, "oldest")
		for _, store := range s.shards {
			store.Part = rapid.IntRange(0, 4).Draw(t, "part")
		}
		want, _ := walk(t, s.one, f, oldest, func() int { return 1000 })
		got, missing := walk(t, s.all, f, oldest, func() int { return rapid.IntRange(1, 9).Draw(t, "limit") })
		if !slices.Equal(texts(got), texts(want)) || missing != nil {
			t.Fatalf("found %q, want %q, without %v", texts(got), texts(want), missing)
		}
		for _, d := range got {
			i := slices.IndexFunc(s.of, func(own []reader.Decision) bool {
				return slices.ContainsFunc(own, func(o reader.Decision) bool { return o.ID == d.ID })
			})
			if d.Shard != string(rune('a'+i)) {
				t.Fatalf("%s is said to be in shard %q", d.ID, d.Shard)
			}
		}
	})
}

// A decision that two shards have is shown twice: hiding one could hide a conflict.
func TestSearch_SameInTwoShards(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := split{of: make([][]reader.Decision, 3)}
		want := 0
		for i := range rapid.IntRange(1, 6).Draw(t, "decisions") {
			d := decision(fmt.Sprint(i), rapid.IntRange(0, 2).Draw(t, "second"), "a", reader.Allowed)
			for of := range s.of {
				if rapid.Bool().Draw(t, "there") {
					s.of[of] = append(s.of[of], d)
					want++
				}
			}
		}
		s.build()
		got, _ := walk(t, s.all, reader.Filter{}, rapid.Bool().Draw(t, "oldest"), func() int { return rapid.IntRange(1, 4).Draw(t, "limit") })
		if len(got) != want {
			t.Fatalf("%d decisions, want %d: %q", len(got), want, texts(got))
		}
	})
}

// A shard that goes away is missing from that page on, and every later page says so, even if it is back. Otherwise its
// decisions of the lost page would be missing in silence.
func TestSearch_ShardAway(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, oldest := divided(t), rapid.Bool().Draw(t, "oldest")
		away, at := rapid.IntRange(0, 2).Draw(t, "away"), rapid.IntRange(0, 3).Draw(t, "page")
		page, asked := 0, false
		got, missing := walk(t, s.all, reader.Filter{}, oldest, func() int {
			switch page {
			case at:
				asked = true
				s.shards[away].Fail(errors.New("gone"))
			case at + 1:
				s.shards[away].Fail(nil)
			}
			page++
			return 3
		})
		if at == 0 {
			want, _ := walk(t, s.without(away), reader.Filter{}, oldest, func() int { return 1000 })
			if !slices.Equal(texts(got), texts(want)) || !slices.Equal(missing, []string{string(rune('a' + away))}) {
				t.Fatalf("found %q, want %q, without %v", texts(got), texts(want), missing)
			}
			return
		}
		want, _ := walk(t, s.one, reader.Filter{}, oldest, func() int { return 1000 })
		if complete := slices.Equal(texts(got), texts(want)); !complete && missing == nil {
			t.Fatalf("decisions are missing, and nothing says so: %q, want %q, asked %v", texts(got), texts(want), asked)
		}
		if i := slices.IndexFunc(got, func(d reader.Decision) bool { return !slices.Contains(texts(want), texts([]reader.Decision{d})[0]) }); i >= 0 || !inOrder(got, oldest) {
			t.Fatalf("wrong order or unknown decision: %q", texts(got))
		}
	})
}

func inOrder(all []reader.Decision, oldest bool) bool {
	return slices.IsSortedFunc(all, func(a, b reader.Decision) int {
		turn := -1
		if oldest {
			turn = 1
		}
		if c := a.Time.Compare(b.Time); c != 0 {
			return turn * c
		}
		return turn * strings.Compare(a.ID, b.ID)
	})
}

func TestSearch_Cursors(t *testing.T) {
	t.Parallel()
	s := split{of: [][]reader.Decision{{decision("x", 1, "a", reader.Allowed)}, {decision("y", 2, "a", reader.Allowed)}, nil}}
	s.build()
	found, err := s.all.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1})
	if err != nil || found.Next == "" || found.Decisions[0].ID != "y" {
		t.Fatalf("%+v, %v", found, err)
	}
	two := sharded.New(sharded.Shard{Name: "z", Store: s.shards[0]})
	for name, search := range map[string]func() (reader.Found, error){
		"other order": func() (reader.Found, error) {
			return s.all.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1, After: found.Next, Oldest: true})
		},
		"no cursor": func() (reader.Found, error) {
			return s.all.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1, After: "newest x"})
		},
		"other shards": func() (reader.Found, error) {
			return two.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1, After: found.Next})
		},
	} {
		if _, err := search(); !errors.Is(err, reader.ErrCursor) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestByID_Begins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := divided(t)
		prefix := rapid.SampledFrom([]string{"", "0", "1", "12", "9"}).Draw(t, "prefix")
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		want, _ := s.one.Begins(context.Background(), prefix, limit)
		got, err := s.all.Begins(context.Background(), prefix, limit)
		if err != nil || !slices.Equal(texts(got), texts(want)) {
			t.Fatalf("begins with %q: %q, want %q, %v", prefix, texts(got), texts(want), err)
		}
		for _, d := range want {
			one, _ := s.one.ByID(context.Background(), d.ID)
			all, err := s.all.ByID(context.Background(), d.ID)
			if err != nil || !slices.Equal(texts(all), texts(one)) {
				t.Fatalf("%s: %q, want %q, %v", d.ID, texts(all), texts(one), err)
			}
		}
	})
}

func TestStats_CountsAreAdded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := divided(t)
		q := reader.StatsQuery{Since: began, Until: began.Add(time.Minute), Step: 2 * time.Second, ByPath: rapid.Bool().Draw(t, "by path")}
		want, _ := s.one.Stats(context.Background(), q)
		got, err := s.all.Stats(context.Background(), q)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("counts %v, want %v, %v", got, want, err)
		}
		away := rapid.IntRange(0, 2).Draw(t, "away")
		s.shards[away].Fail(errors.New("gone"))
		want, _ = s.without(away).Stats(context.Background(), q)
		got, err = s.all.Stats(context.Background(), q)
		if partial := reader.AsPartial(err); partial == nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("without shard %d: %v, want %v, %v", away, got, want, err)
		}
	})
}

// Each decision comes once, whatever the limits and whichever shard is away for a while, and in the order of its shard.
func TestFollow_EachOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := split{of: make([][]reader.Decision, 3)}
		s.build()
		ctx := context.Background()
		_, tail, err := s.all.Follow(ctx, reader.Filter{}, reader.Tail{}, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		added := make([][]string, 3)
		got := make([][]string, 3)
		take := func(limit int) int {
			found, next, err := s.all.Follow(ctx, reader.Filter{}, tail, limit, false)
			if err != nil && reader.AsPartial(err) == nil {
				t.Fatal(err)
			}
			if len(found) > limit {
				t.Fatalf("%d decisions, and the limit is %d", len(found), limit)
			}
			tail = next
			for _, d := range found {
				of := int(d.Shard[0] - 'a')
				got[of] = append(got[of], d.ID)
			}
			return len(found)
		}
		away := -1
		for n := range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				if away >= 0 {
					s.shards[away].Fail(nil)
				}
				away = rapid.IntRange(-1, 2).Draw(t, "away")
				if away >= 0 {
					s.shards[away].Fail(errors.New("gone"))
				}
			case 1:
				take(rapid.IntRange(1, 5).Draw(t, "limit"))
			default:
				of := rapid.IntRange(0, 2).Draw(t, "shard")
				d := decision(fmt.Sprint(n), n, "a", reader.Allowed)
				s.shards[of].Add(d)
				added[of] = append(added[of], d.ID)
			}
		}
		if away >= 0 {
			s.shards[away].Fail(nil)
		}
		for idle := 0; idle < 3; {
			if idle++; take(2) > 0 {
				idle = 0
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(added) {
			t.Fatalf("followed %v, stored %v", got, added)
		}
	})
}

// TestFollow_SaysThatThereIsMore: a shard with more than its part of the limit is not at its end, though the answer is short.
func TestFollow_SaysThatThereIsMore(t *testing.T) {
	t.Parallel()
	s := split{of: make([][]reader.Decision, 3)}
	s.build()
	_, tail, err := s.all.Follow(t.Context(), reader.Filter{}, reader.Tail{}, 9, false)
	if err != nil || s.all.MoreAfter(tail) {
		t.Fatalf("at the end there is more: %v", err)
	}
	for n := range 7 {
		s.shards[1].Add(decision(fmt.Sprint(n), n, "a", reader.Allowed))
	}
	for _, want := range []struct {
		n    int
		more bool
	}{{3, true}, {3, true}, {1, false}, {0, false}} {
		found, next, err := s.all.Follow(t.Context(), reader.Filter{}, tail, 9, false)
		if tail = next; err != nil || len(found) != want.n || s.all.MoreAfter(tail) != want.more {
			t.Fatalf("%d, more %t, %v; want %+v", len(found), s.all.MoreAfter(tail), err, want)
		}
	}
}

func TestFollow_ByStoredAt(t *testing.T) {
	t.Parallel()
	s := split{of: make([][]reader.Decision, 3)}
	s.build()
	_, tail, err := s.all.Follow(t.Context(), reader.Filter{}, reader.Tail{}, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	for n, of := range []int{2, 0, 1, 1, 0} {
		s.shards[of].Add(decision(fmt.Sprint(n), n, "a", reader.Allowed))
	}
	found, _, err := s.all.Follow(t.Context(), reader.Filter{}, tail, 100, false)
	if err != nil || !slices.IsSortedFunc(found, func(a, b reader.Decision) int { return strings.Compare(a.ID, b.ID) }) || len(found) != 5 {
		t.Errorf("followed %q, %v", texts(found), err)
	}
}

// Audit lines are numbered in each ledger, so the edit of a decision is asked of its own shard.
func TestEdits_OfTheirShard(t *testing.T) {
	t.Parallel()
	s := split{of: [][]reader.Decision{{decision("x", 1, "a", reader.Allowed)}, {decision("y", 2, "a", reader.Allowed)}, nil}}
	s.build()
	for i, by := range []string{"alice", "bob", "eve"} {
		for _, id := range []string{"x", "y"} {
			s.shards[i].Edited(id, reader.Edit{AuditID: 7, By: by})
		}
	}
	found, err := s.all.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	edits, err := s.all.Edits(t.Context(), found.Decisions, false)
	if err != nil || len(edits) != 2 || edits[0].By != "bob" || edits[1].By != "alice" {
		t.Errorf("edits %+v, %v", edits, err)
	}
	s.shards[0].FailEdits(reader.ErrEdits)
	if _, err := s.all.Edits(t.Context(), found.Decisions, false); !errors.Is(err, reader.ErrEdits) {
		t.Errorf("an unknown edit is not told: %v", err)
	}
}

// If every shard fails there is only the error of the first.
func TestStore_AllAway(t *testing.T) {
	t.Parallel()
	s := split{of: make([][]reader.Decision, 3)}
	s.build()
	gone := errors.New("gone")
	for _, store := range s.shards {
		store.Fail(gone)
	}
	ctx := t.Context()
	_, search := s.all.Search(ctx, reader.Filter{}, reader.Page{Limit: 1})
	_, byID := s.all.ByID(ctx, "x")
	_, begins := s.all.Begins(ctx, "x", 1)
	_, stats := s.all.Stats(ctx, reader.StatsQuery{Since: began, Step: time.Hour})
	_, _, follow := s.all.Follow(ctx, reader.Filter{}, reader.Tail{}, 1, false)
	for name, err := range map[string]error{"search": search, "by id": byID, "begins": begins, "stats": stats, "follow": follow} {
		if !errors.Is(err, gone) || reader.AsPartial(err) != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.all.ByID(ended, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	for _, store := range s.shards {
		store.Fail(nil)
	}
	s.shards[1].FailBegins(reader.ErrWhole)
	if _, err := s.all.Begins(ctx, "x", 1); !errors.Is(err, reader.ErrWhole) || reader.AsPartial(err) != nil {
		t.Errorf("a shard that needs the whole id: %v", err)
	}
}

func TestParts_Pass(t *testing.T) {
	t.Parallel()
	var parts reader.Parts
	gone := errors.New("gone")
	if parts.Err() != nil || !errors.Is(parts.Pass(gone), gone) || parts.Pass(nil) != nil || parts.Err() != nil {
		t.Error("an error that is not partial is the caller's")
	}
	for _, name := range []string{"a", "b", "a"} {
		if err := parts.Pass(fmt.Errorf("look: %w", &reader.PartialError{Missed: []reader.Missed{{Shard: name, Err: gone}}})); err != nil {
			t.Error(err)
		}
	}
	until := began
	said := reader.Completeness{Freshness: reader.Fresh, CompleteUntil: &until}
	if said.Lack(nil); said.Freshness != reader.Fresh {
		t.Error("an answer of all shards is complete")
	}
	if said.Lack(&parts); said.Freshness != reader.Partial || said.CompleteUntil != nil {
		t.Errorf("an answer without two shards is said to be %+v", said)
	}
	partial := reader.AsPartial(parts.Err())
	if partial == nil || !slices.Equal(partial.Missing(), []string{"a", "b"}) || !errors.Is(partial, gone) || !strings.Contains(partial.Error(), "shard b: gone") {
		t.Errorf("%v", parts.Err())
	}
}

// gappy answers as a store whose archives could not be read completely.
type gappy struct{ reader.Store }

func (g gappy) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	found, err := g.Store.Search(ctx, f, p)
	found.Archives, found.NotLooked = true, []reader.Gap{{Name: "2026-01-02", Why: "hangs", Forgotten: true}}
	return found, err
}

// paged has one page with a decision and one without. Both lack the same archived day.
type paged struct{ reader.Store }

func (paged) Search(_ context.Context, _ reader.Filter, p reader.Page) (found reader.Found, err error) {
	found.NotLooked = []reader.Gap{{Name: "2026-01-02", Why: "hangs"}}
	if p.After != "behind it" {
		found.Next, found.Decisions = "behind it", []reader.Decision{{Row: reader.Row{ID: "a", Time: time.Unix(0, 0)}}}
	}
	return found, nil
}

// TestSearch_GapOfSkippedPages: a shard skips what was returned already. A day that each of its pages lacks is named once.
func TestSearch_GapOfSkippedPages(t *testing.T) {
	t.Parallel()
	all := sharded.New(sharded.Shard{Name: "a", Store: paged{&readertest.Store{}}})
	after := all.CursorAt(reader.Spot{Time: time.Unix(0, 0), ID: "a"}, "", false)
	if found, err := all.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 3, After: after}); err != nil || len(found.Decisions) > 0 || len(found.NotLooked) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Archived days that one shard did not read are gaps of the whole answer.
func TestSearch_GapsOfAShard(t *testing.T) {
	t.Parallel()
	all := sharded.New(sharded.Shard{Name: "a", Store: &readertest.Store{}}, sharded.Shard{Name: "b", Store: gappy{&readertest.Store{}}})
	found, err := all.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 3})
	if err != nil || !found.Archives || len(found.NotLooked) != 1 || found.NotLooked[0] != (reader.Gap{Name: "shard b, 2026-01-02", Why: "hangs", Forgotten: true}) {
		t.Errorf("%+v, %v", found, err)
	}
}
