package sharded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"docket/internal/history/reader"
	"docket/internal/history/state"
)

// StatesShard is one of the stores of states.
type StatesShard struct {
	Name  string
	Store state.Store
}

// States is a [state.Store] over several. A [reader.PartialError] comes with an answer of some shards. It names those that do not
// answer, keep no states, or find subjects by other settings than the first.
type States struct{ shards []StatesShard }

var _ state.Store = (*States)(nil)

// NewStates makes a store over shards, which must have different names.
func NewStates(shards ...StatesShard) *States { return &States{shards} }

func (s *States) names() []string {
	names := make([]string, len(s.shards))
	for i := range s.shards {
		names[i] = s.shards[i].Name
	}
	return names
}

// States implements [state.Store]. Each state is joined as [state.Join] says.
func (s *States) States(ctx context.Context, subject string, paths []string, limit int) ([]state.State, state.Mark, error) {
	found, marks := make([][]state.State, len(s.shards)), make([]*state.Mark, len(s.shards))
	err := askAll(ctx, s.names(), func(ctx context.Context, i int) error {
		all, mark, err := s.shards[i].Store.States(ctx, subject, paths, limit)
		if err == nil {
			found[i], marks[i] = all, &mark
		}
		return err
	})
	if !usable(err) {
		return nil, state.Mark{}, err
	}
	mark, err := s.marked(marks, err)
	parts := map[string][]state.Part{}
	known := map[string]*state.Mark{}
	for i := range found {
		if marks[i] == nil {
			continue
		}
		known[s.shards[i].Name] = marks[i]
		for _, one := range found[i] {
			parts[one.Path] = append(parts[one.Path], state.Part{Shard: s.shards[i].Name, State: one})
		}
	}
	var all []state.State
	for _, path := range slices.Sorted(maps.Keys(parts)) { // byte by byte, as the tables order them
		one := state.Join(parts[path])
		one.Doubt(known)
		all = append(all, one)
	}
	return all[:min(limit, len(all))], mark, reader.Told(ctx, err)
}

// marked joins the marks of shards, and forgets those that do not fit the first.
func (s *States) marked(marks []*state.Mark, err error) (all state.Mark, lacking error) {
	var missed []reader.Missed
	if partial := reader.AsPartial(err); partial != nil {
		missed = slices.Clone(partial.Missed)
	}
	for i, m := range marks {
		switch {
		case m == nil:
			continue
		case all.Shards == nil:
			all = *m
		case m.SubjectsBy != all.SubjectsBy:
			missed = append(missed, reader.Missed{Shard: s.shards[i].Name, Err: &SubjectsError{By: m.SubjectsBy, First: all.Shards[0], FirstBy: all.SubjectsBy}})
			marks[i] = nil
			continue
		default:
			join(&all, m)
		}
		all.Shards = append(all.Shards, s.shards[i].Name)
	}
	if len(missed) == 0 {
		return all, nil
	}
	return all, &reader.PartialError{Missed: missed}
}

// join adds a mark: the joined states have what every one of them has.
func join(all, m *state.Mark) {
	if m.StoredBefore.Before(all.StoredBefore) {
		all.StoredBefore = m.StoredBefore
	}
	if m.StoredSince.After(all.StoredSince) {
		all.StoredSince = m.StoredSince
	}
	if m.FullAt != nil && (all.FullAt == nil || m.FullAt.After(*all.FullAt)) {
		all.FullAt = m.FullAt
	}
	if m.TrimmedBefore != nil && (all.TrimmedBefore == nil || m.TrimmedBefore.After(*all.TrimmedBefore)) {
		all.TrimmedBefore = m.TrimmedBefore
	}
	all.States += m.States
}

// SubjectsError says that a shard finds subjects by other settings than the first, so its states have other subjects.
type SubjectsError struct{ By, First, FirstBy string }

func (e *SubjectsError) Error() string {
	return fmt.Sprintf("its desk finds subjects by %s, and that of shard %s by %s", e.By, e.First, e.FirstBy)
}

// Flips implements [state.Store]. Each shard notes flips between its own decisions. The order is that of each shard, and
// that of storing among them.
func (s *States) Flips(ctx context.Context, q state.FlipQuery) ([]state.Flip, state.Mark, error) {
	found, marks := make([][]state.Flip, len(s.shards)), make([]*state.Mark, len(s.shards))
	places := state.Places{}
	for _, one := range s.shards {
		places[one.Name] = q.Places[one.Name]
	}
	starts := make([]int64, len(s.shards))
	err := askAll(ctx, s.names(), func(ctx context.Context, i int) error {
		all, mark, start, err := s.flipsOf(ctx, i, q)
		if err == nil {
			found[i], marks[i], starts[i] = all, &mark, start
		}
		return err
	})
	if !usable(err) {
		return nil, state.Mark{}, err
	}
	mark, err := s.marked(marks, err)
	mark.Places, mark.Newest = places, state.Places{}
	for i, m := range marks {
		name := s.shards[i].Name
		if m == nil {
			found[i], mark.Newest[name] = nil, state.FromNow
			continue
		}
		places[name], mark.Newest[name] = starts[i], max(starts[i], 0)
		if len(found[i]) > 0 && q.Backward {
			mark.Newest[name] = found[i][0].ID
			if starts[i] == 0 { // flips that are noted from now on are on no later page
				places[name] = found[i][0].ID + 1
			}
		}
	}
	all := mergeFlips(found, q)
	for i := range all {
		places[all[i].Shard] = all[i].ID
	}
	return all, mark, reader.Told(ctx, err)
}

// flipsOf asks one shard. start is its place before what it found.
func (s *States) flipsOf(ctx context.Context, i int, q state.FlipQuery) (all []state.Flip, mark state.Mark, start int64, err error) {
	own := q
	start = q.Places[s.shards[i].Name]
	own.Places, own.After, own.Before = nil, 0, 0
	if start == state.FromNow {
		own.Backward, own.Limit = true, 1
		if all, mark, err = s.shards[i].Store.Flips(ctx, own); err == nil && len(all) > 0 {
			return nil, mark, all[0].ID, nil
		}
		return nil, mark, 0, err
	}
	if q.Backward {
		own.Before = start
	} else {
		own.After = start
	}
	all, mark, err = s.shards[i].Store.Flips(ctx, own)
	for n := range all {
		all[n].Shard = s.shards[i].Name
	}
	return all, mark, start, err
}

// mergeFlips joins lists by the time of storing and keeps the order of each.
func mergeFlips(parts [][]state.Flip, q state.FlipQuery) (all []state.Flip) {
	for len(all) < q.Limit {
		next := -1
		for i := range parts {
			if len(parts[i]) == 0 {
				continue
			}
			if next < 0 || sooner(&parts[i][0], &parts[next][0], q.Backward) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		all = append(all, parts[next][0])
		parts[next] = parts[next][1:]
	}
	return all
}

func sooner(a, b *state.Flip, backward bool) bool {
	if backward {
		return a.StoredAt.After(b.StoredAt)
	}
	return a.StoredAt.Before(b.StoredAt)
}

// PlacesText writes the places of a page as text, for a client to give back.
func PlacesText(p state.Places) string {
	texts := make([]string, 0, len(p))
	for _, name := range slices.Sorted(maps.Keys(p)) {
		texts = append(texts, fmt.Sprintf("%s=%d", name, p[name]))
	}
	return strings.Join(texts, ",")
}

// errPlaces says that a text is not of [PlacesText].
var errPlaces = errors.New("not the place of a page of flips")

// ParsePlaces reads what PlacesText wrote. A shard that is not in it begins with all its flips.
func ParsePlaces(text string) (state.Places, error) {
	p := state.Places{}
	for part := range strings.SplitSeq(text, ",") {
		name, number, is := strings.Cut(part, "=")
		id, err := strconv.ParseInt(number, 10, 64)
		if !is || err != nil || id < state.FromNow {
			return nil, errPlaces
		}
		p[name] = id
	}
	return p, nil
}
