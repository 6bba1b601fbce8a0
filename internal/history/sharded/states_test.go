package sharded_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/history/state"
	"docket/internal/record/verdict"
	"docket/internal/testkit/readertest"
)

// kept are states and flips of three shards.
func kept(flips ...int) (all *sharded.States, of []*readertest.States) {
	var shards []sharded.StatesShard
	for i := range 3 {
		s := &readertest.States{Mark: state.Mark{StoredBefore: began.Add(time.Duration(-i) * time.Second), StoredSince: began.Add(time.Duration(i-100) * time.Hour), SubjectsBy: "*=input:/user", States: 2}}
		of = append(of, s)
		shards = append(shards, sharded.StatesShard{Name: string(rune('a' + i)), Store: s})
	}
	for n, i := range flips {
		of[i].Note(noted(n, len(of[i].Noted)+1))
	}
	return sharded.NewStates(shards...), of
}

func noted(n, id int) state.Flip {
	at := began.Add(time.Duration(n) * time.Second)
	return state.Flip{ID: int64(id), Key: state.Key{Subject: "alice", Path: "p"}, Was: verdict.Allowed, Verdict: verdict.Denied, Version: state.Version{Time: at, ID: fmt.Sprint(n)}, StoredAt: at}
}

func said(subject, path string, at int, v verdict.Verdict) state.State {
	var s state.State
	s.Apply(&state.Decision{Key: state.Key{Subject: subject, Path: path}, Version: state.Version{Time: began.Add(time.Duration(at) * time.Second), ID: fmt.Sprint(at)}, Verdict: v})
	return s
}

func TestStates_NewestOfAllShards(t *testing.T) {
	t.Parallel()
	all, of := kept()
	of[0].All = []state.State{said("alice", "p", 1, verdict.Allowed), said("alice", "q", 9, verdict.Denied)}
	of[2].All = []state.State{said("alice", "A", 3, verdict.Denied), said("alice", "p", 5, verdict.Denied)}
	full := began.Add(-time.Hour)
	of[1].Mark.FullAt = &full
	got, mark, err := all.States(t.Context(), "alice", nil, 2)
	if err != nil || len(got) != 2 || got[0].Path != "A" || got[1].Verdict != verdict.Denied || got[1].Before.ID != "1" || !slices.Equal(got[1].Shards, []string{"a", "c"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if !mark.StoredBefore.Equal(began.Add(-2*time.Second)) || !mark.StoredSince.Equal(began.Add(-98*time.Hour)) || mark.FullAt == nil || mark.States != 6 || !slices.Equal(mark.Shards, []string{"a", "b", "c"}) {
		t.Errorf("mark %+v", mark)
	}
}

// A joined state says what is not exact, where a shard removed states or had no room.
func TestStates_SaysWhatIsNotExact(t *testing.T) {
	t.Parallel()
	at := func(seconds int) *time.Time { u := began.Add(time.Duration(seconds) * time.Second); return &u }
	newest := []string{"verdict", "revision", "hash", "last_seen", "version_ts", "version_id"}
	for name, c := range map[string]struct {
		spoil  func(of []*readertest.States)
		fields []string
		shards []string
		before *time.Time
	}{
		"nothing removed":            {func([]*readertest.States) {}, nil, nil, nil},
		"removed before the change":  {func(of []*readertest.States) { of[1].Mark.TrimmedBefore = at(1) }, []string{"decisions"}, []string{"b"}, at(1)},
		"removed since the change":   {func(of []*readertest.States) { of[1].Mark.TrimmedBefore = at(4) }, []string{"decisions", "since", "before"}, []string{"b"}, at(4)},
		"removed newer ones":         {func(of []*readertest.States) { of[1].Mark.TrimmedBefore = at(6) }, append([]string{"decisions", "since", "before"}, newest...), []string{"b"}, at(6)},
		"by a shard with a state":    {func(of []*readertest.States) { of[0].Mark.TrimmedBefore = at(1) }, []string{"decisions"}, []string{"a"}, at(1)},
		"no room":                    {func(of []*readertest.States) { of[1].Mark.FullAt = at(1) }, append([]string{"decisions", "since", "before"}, newest...), []string{"b"}, nil},
		"no room at first":           {func(of []*readertest.States) { of[2].Mark.FullAt = at(1) }, []string{"decisions"}, []string{"c"}, at(1)},
		"two shards, the latest one": {func(of []*readertest.States) { of[0].Mark.TrimmedBefore, of[1].Mark.TrimmedBefore = at(4), at(1) }, []string{"decisions", "since", "before"}, []string{"a", "b"}, at(4)},
	} {
		all, of := kept()
		of[0].All = []state.State{said("alice", "p", 2, verdict.Allowed)}
		of[2].All = []state.State{said("alice", "p", 5, verdict.Denied)}
		c.spoil(of)
		got, mark, err := all.States(t.Context(), "alice", nil, 2)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		l := got[0].Lacks
		if c.fields == nil {
			if l != nil || mark.TrimmedBefore != nil {
				t.Errorf("%s: %+v, mark %+v", name, l, mark)
			}
			continue
		}
		if l == nil || !slices.Equal(l.Fields, c.fields) || !slices.Equal(l.Shards, c.shards) || (l.Before == nil) != (c.before == nil) || l.Before != nil && !l.Before.Equal(*c.before) {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// A shard that cannot be asked, that keeps no states, or that finds other subjects is named, and the others answer.
func TestStates_ShardsThatAreMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(s *readertest.States)
		want  string
	}{
		"away":           {func(s *readertest.States) { s.Fail(errors.New("gone")) }, "gone"},
		"without states": {func(s *readertest.States) { s.Mark.StoredBefore = time.Time{} }, "no desk keeps them"},
		"other subjects": {func(s *readertest.States) { s.Mark.SubjectsBy = "*=label:user" }, "finds subjects by *=label:user"},
	} {
		all, of := kept(1, 0)
		c.spoil(of[1])
		of[0].All = []state.State{said("alice", "p", 1, verdict.Allowed)}
		of[1].All = []state.State{said("alice", "p", 2, verdict.Denied)}
		got, mark, err := all.States(t.Context(), "alice", nil, 9)
		partial := reader.AsPartial(err)
		if partial == nil || !slices.Equal(partial.Missing(), []string{"b"}) || !strings.Contains(err.Error(), c.want) || len(got) != 1 || got[0].Verdict != verdict.Allowed || !slices.Equal(mark.Shards, []string{"a", "c"}) {
			t.Errorf("%s: %+v, %+v, %v", name, got, mark, err)
		}
		flips, _, err := all.Flips(t.Context(), state.FlipQuery{Limit: 9})
		if partial := reader.AsPartial(err); partial == nil || len(flips) != 1 || flips[0].Shard != "a" {
			t.Errorf("%s: flips %+v, %v", name, flips, err)
		}
		ctx, parts := reader.WithParts(t.Context())
		if _, _, err := all.States(ctx, "alice", nil, 9); err != nil || !slices.Equal(parts.NotAsked(), []string{"b"}) {
			t.Errorf("%s: noted %v, %v", name, parts.NotAsked(), err)
		}
	}
}

// Only where no shard keeps states there are none.
func TestStates_NoneInAllShards(t *testing.T) {
	t.Parallel()
	all, of := kept()
	for _, s := range of {
		s.Mark.StoredBefore = time.Time{}
	}
	if _, _, err := all.States(t.Context(), "alice", nil, 1); !errors.Is(err, state.ErrNone) || reader.AsPartial(err) != nil {
		t.Error(err)
	}
	gone := errors.New("gone")
	of[2].Fail(gone)
	if _, _, err := all.Flips(t.Context(), state.FlipQuery{Limit: 1}); !errors.Is(err, gone) || errors.Is(err, state.ErrNone) {
		t.Error(err)
	}
}

// Pages of any size show each flip once, in the order of storing, also if a shard is away for a page.
func TestFlips_EachOnceOverPages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.IntRange(0, 2), 0, 25).Draw(t, "shards")
		all, of := kept(in...)
		q := state.FlipQuery{Limit: rapid.IntRange(1, 5).Draw(t, "limit"), Backward: rapid.Bool().Draw(t, "backward")}
		away := rapid.IntRange(-1, 3).Draw(t, "page without a shard")
		var got []string
		for page := 0; ; page++ {
			if page == away {
				of[1].Fail(errors.New("gone"))
			}
			found, mark, err := all.Flips(t.Context(), q)
			if (reader.AsPartial(err) != nil) != (page == away) {
				t.Fatal(err)
			}
			of[1].Fail(nil)
			for _, f := range found {
				got = append(got, f.Version.ID)
			}
			text := sharded.PlacesText(mark.Places)
			q = q.Next(found, mark)
			if q.Places, err = sharded.ParsePlaces(text); err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 && page != away {
				break
			}
			if page < 3 {
				of[0].Note(noted(100+page, 1000+page)) // it is on a later page forward, and on none backward
			}
		}
		late := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return len(id) < 3 })
		got = slices.DeleteFunc(got, func(id string) bool { return len(id) == 3 })
		var want []string
		for n := range in {
			want = append(want, fmt.Sprint(n))
		}
		if q.Backward {
			slices.Reverse(want)
		}
		if away >= 0 {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) || q.Backward && slices.Contains(in, 0) && away < 0 && len(late) > 0 {
			t.Fatalf("pages have %q and later %q, want %q", got, late, want)
		}
	})
}

// A follower starts behind the last flips. It sees each new one once, and no older one, also of a shard that was away then.
func TestFlips_FollowedFromTheNewest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.IntRange(0, 2), 0, 12).Draw(t, "shards")
		all, of := kept(in...)
		away := rapid.Bool().Draw(t, "away")
		if away {
			of[1].Fail(errors.New("gone"))
		}
		_, mark, err := all.Flips(t.Context(), state.FlipQuery{Limit: 2, Backward: true})
		if (reader.AsPartial(err) != nil) != away {
			t.Fatal(err)
		}
		of[1].Fail(nil)
		q := state.FlipQuery{Limit: 2, Places: mark.Newest}
		if away {
			found, mark, err := all.Flips(t.Context(), q)
			if err != nil || len(found) > 0 {
				t.Fatalf("%+v, %v", found, err)
			}
			q = q.Next(found, mark)
		}
		var got, want []string
		for n, i := range rapid.SliceOfN(rapid.IntRange(0, 2), 0, 12).Draw(t, "new ones") {
			of[i].Note(noted(100+n, 1000+n))
			want = append(want, fmt.Sprint(100+n))
		}
		for {
			found, mark, err := all.Flips(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if q = q.Next(found, mark); len(found) == 0 {
				break
			}
			for _, f := range found {
				got = append(got, f.Version.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("followed %q, want %q", got, want)
		}
	})
}

func TestParsePlaces_Wrong(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "a=", "a=x", "a=-2", "a=1,", "a=1,b"} {
		if p, err := sharded.ParsePlaces(text); err == nil {
			t.Errorf("%q: %v", text, p)
		}
	}
}
