package sharded

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"docket/internal/history/reader"
	"docket/internal/history/state"
)

// Shard is one of the stores.
type Shard struct {
	Name  string
	Store reader.Store
}

// Store is a [reader.Store] over several. Decisions in its answers name their shard.
type Store struct {
	shards []Shard
}

// New makes a store over shards, which must have different names.
func New(shards ...Shard) *Store { return &Store{shards} }

// ask asks every shard at the same time. do runs for each with its index. The error is that of the context, or the
// first that is not about one shard alone. If every shard fails, it is the error of the first. Otherwise failures are a
// [*reader.PartialError]. So are places that a shard could not read: each shard notes its own, as all answer at once.
func (s *Store) ask(ctx context.Context, do func(ctx context.Context, i int, one reader.Store) error) error {
	names := make([]string, len(s.shards))
	for i := range s.shards {
		names[i] = s.shards[i].Name
	}
	return askAll(ctx, names, func(ctx context.Context, i int) error { return do(ctx, i, s.shards[i].Store) })
}

// askAll is ask for shards with these names.
func askAll(ctx context.Context, names []string, do func(ctx context.Context, i int) error) error {
	errs, parts := make([]error, len(names)), make([]*reader.Parts, len(names))
	var asking sync.WaitGroup
	for i := range names {
		var own context.Context
		own, parts[i] = reader.WithParts(ctx)
		asking.Go(func() { errs[i] = do(own, i) })
	}
	asking.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var missed []reader.Missed
	for i, err := range errs {
		switch {
		case err == nil || errors.Is(err, errNotAsked):
		case errors.Is(err, reader.ErrCursor), errors.Is(err, reader.ErrWhole):
			return err
		default:
			missed = append(missed, reader.Missed{Shard: names[i], Err: err})
		}
	}
	if len(missed) == len(names) && len(missed) > 0 {
		return missed[max(slices.IndexFunc(missed, func(m reader.Missed) bool { return !errors.Is(m.Err, state.ErrNone) }), 0)].Err
	}
	for i, own := range parts {
		if partial := reader.AsPartial(own.Err()); partial != nil {
			for _, m := range partial.Missed {
				missed = append(missed, reader.Missed{Place: "shard " + names[i] + ", " + m.Place, Err: m.Err})
			}
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return &reader.PartialError{Missed: missed}
}

// errNotAsked is the result of a shard that has nothing more.
var errNotAsked = errors.New("not asked")

// usable reports whether an answer came with an error.
func usable(err error) bool { return err == nil || reader.AsPartial(err) != nil }

// named says of each decision which shard has it.
func (s *Store) named(i int, all []reader.Decision) []reader.Decision {
	for n := range all {
		all[n].Shard = s.shards[i].Name
	}
	return all
}

// ByID implements [reader.Store].
func (s *Store) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	parts := make([][]reader.Decision, len(s.shards))
	err := s.ask(ctx, func(ctx context.Context, i int, one reader.Store) (err error) {
		parts[i], err = one.ByID(ctx, id)
		s.named(i, parts[i])
		return err
	})
	if !usable(err) {
		return nil, err
	}
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b reader.Decision) int { return a.Time.Compare(b.Time) })
	return all, reader.Told(ctx, err)
}

// Begins implements [reader.Store].
func (s *Store) Begins(ctx context.Context, prefix string, limit int) ([]reader.Decision, error) {
	parts := make([][]reader.Decision, len(s.shards))
	err := s.ask(ctx, func(ctx context.Context, i int, one reader.Store) (err error) {
		parts[i], err = one.Begins(ctx, prefix, limit)
		s.named(i, parts[i])
		return err
	})
	if !usable(err) {
		return nil, err
	}
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b reader.Decision) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), a.Time.Compare(b.Time))
	})
	all = slices.CompactFunc(all, func(a, b reader.Decision) bool { return a.ID == b.ID })
	return all[:min(limit, len(all))], reader.Told(ctx, err)
}

// Stats implements [reader.Store]. It adds the counts of equal lines.
func (s *Store) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	parts := make([][]reader.Stats, len(s.shards))
	err := s.ask(ctx, func(ctx context.Context, i int, one reader.Store) (err error) {
		parts[i], err = one.Stats(ctx, q)
		return err
	})
	if !usable(err) {
		return nil, err
	}
	var all []reader.Stats
	lines := slices.Concat(parts...)
	slices.SortStableFunc(lines, reader.Stats.Compare)
	for _, l := range lines {
		if n := len(all); n > 0 && all[n-1].Compare(l) == 0 {
			for v, count := range l.Counts {
				all[n-1].Counts[v] += count
			}
			continue
		}
		l.Counts = maps.Clone(l.Counts)
		all = append(all, l)
	}
	return all, reader.Told(ctx, err)
}

// Edits implements [reader.Editions]. Each shard is asked about its own decisions, because audit lines are numbered in
// each ledger.
func (s *Store) Edits(ctx context.Context, decisions []reader.Decision, whole bool) (map[int]reader.Edit, error) {
	parts := make([]map[int]reader.Edit, len(s.shards))
	err := s.ask(ctx, func(ctx context.Context, i int, one reader.Store) error {
		of, ok := one.(reader.Editions)
		own, at := s.own(i, decisions)
		if !ok || len(own) == 0 {
			return nil
		}
		found, err := of.Edits(ctx, own, whole)
		parts[i] = make(map[int]reader.Edit, len(found))
		for n, e := range found {
			parts[i][at[n]] = e
		}
		return err
	})
	all := map[int]reader.Edit{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all, err
}

// own returns the decisions of a shard, and their places among all.
func (s *Store) own(i int, decisions []reader.Decision) (own []reader.Decision, at []int) {
	for n, d := range decisions {
		if d.Shard == s.shards[i].Name {
			own, at = append(own, d), append(at, n)
		}
	}
	return own, at
}

var (
	_ reader.Store    = (*Store)(nil)
	_ reader.Editions = (*Store)(nil)
)
