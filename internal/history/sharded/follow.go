package sharded

import (
	"context"
	"slices"
	"strings"
	"time"

	"docket/internal/history/reader"
)

// mark is the place of a follower in each shard. A place without a mark is now, of a shard that has not answered yet.
type mark struct {
	tails []reader.Tail
	turn  int  // the shard whose part of the limit is rounded up
	more  bool // a shard filled its part, so there may be more
}

// Follow implements [reader.Store]. The order is that of storing in each shard, and that of stored_at among them. Each
// shard has its part of the limit, so that none waits for the backlog of another. If the question ends before every shard answered,
// it returns what the others told, as their places do not tell it again.
func (s *Store) Follow(ctx context.Context, f reader.Filter, t reader.Tail, limit int, payload bool) ([]reader.Decision, reader.Tail, error) {
	before, ok := t.Mark.(*mark)
	if !ok || len(before.tails) != len(s.shards) {
		before = &mark{tails: make([]reader.Tail, len(s.shards))}
	}
	n := len(s.shards)
	after := &mark{tails: slices.Clone(before.tails), turn: (before.turn + 1) % n}
	parts, full, lacks := make([][]reader.Decision, n), make([]bool, n), make([]error, n)
	err := s.ask(ctx, func(ctx context.Context, i int, one reader.Store) error {
		part := limit / n
		if (i-before.turn+n)%n < limit%n {
			part++
		}
		if part == 0 && before.tails[i].Mark != nil {
			return errNotAsked
		}
		found, tail, err := one.Follow(ctx, f, before.tails[i], max(part, 1), payload)
		if lacks[i] = err; err != nil {
			return err
		}
		parts[i], after.tails[i], full[i] = s.named(i, found), tail, len(found) >= max(part, 1)
		return nil
	})
	after.more = slices.Contains(full, true)
	found := merge(parts)
	if ctx.Err() != nil && len(found) > 0 {
		err = s.lacked(lacks)
	}
	if !usable(err) {
		return nil, t, err
	}
	return found, reader.Tail{Mark: after}, reader.Told(ctx, err)
}

// lacked names the shards with an error; nil: there is none.
func (s *Store) lacked(errs []error) error {
	var parts reader.Parts
	for i, err := range errs {
		if err != nil {
			_ = parts.Pass(&reader.PartialError{Missed: []reader.Missed{{Shard: s.shards[i].Name, Err: err}}}) // it keeps a PartialError, and returns nil
		}
	}
	return parts.Err()
}

// places write a place of a follower as text.
type places interface {
	TailText(t reader.Tail) (string, error)
	ParseTail(text string) (reader.Tail, error)
}

// TailText writes the place in each shard as NAME=TEXT. The text is empty for a shard that has not answered yet.
func (s *Store) TailText(t reader.Tail) (string, error) {
	m, ours := t.Mark.(*mark)
	if !ours || len(m.tails) != len(s.shards) {
		return "", reader.ErrCursor
	}
	texts := make([]string, len(s.shards))
	for i, one := range s.shards {
		text := ""
		of, ok := one.Store.(places)
		if !ok {
			return "", reader.ErrCursor
		}
		if m.tails[i].Mark != nil {
			var err error
			if text, err = of.TailText(m.tails[i]); err != nil {
				return "", err
			}
		}
		texts[i] = one.Name + "=" + text
	}
	return strings.Join(texts, ","), nil
}

// MoreAfter reports whether a shard may have more already at a place that Follow returned.
func (s *Store) MoreAfter(t reader.Tail) bool {
	m, ours := t.Mark.(*mark)
	return ours && m.more
}

// settling is a store that tells until when a follower is done.
type settling interface {
	SettledBefore(t reader.Tail) time.Time
}

// SettledBefore is the earliest time of all shards; zero: one does not tell it, or has not answered yet.
func (s *Store) SettledBefore(t reader.Tail) (before time.Time) {
	m, ours := t.Mark.(*mark)
	if !ours || len(m.tails) != len(s.shards) {
		return time.Time{}
	}
	for i, one := range s.shards {
		of, can := one.Store.(settling)
		if !can || m.tails[i].Mark == nil {
			return time.Time{}
		}
		at := of.SettledBefore(m.tails[i])
		if at.IsZero() {
			return time.Time{}
		}
		if before.IsZero() || at.Before(before) {
			before = at
		}
	}
	return before
}

// ParseTail reads what TailText wrote.
func (s *Store) ParseTail(text string) (reader.Tail, error) {
	texts := strings.Split(text, ",")
	if len(texts) != len(s.shards) {
		return reader.Tail{}, reader.ErrCursor
	}
	m := &mark{tails: make([]reader.Tail, len(s.shards))}
	for i, one := range s.shards {
		of, ok := one.Store.(places)
		place, ours := strings.CutPrefix(texts[i], one.Name+"=")
		if !ok || !ours {
			return reader.Tail{}, reader.ErrCursor
		}
		if place == "" {
			continue
		}
		var err error
		if m.tails[i], err = of.ParseTail(place); err != nil {
			return reader.Tail{}, err
		}
	}
	return reader.Tail{Mark: m}, nil
}

// merge joins lists by stored_at and keeps the order of each. A transaction that ended late is behind later ones in its
// shard, and stays there.
func merge(parts [][]reader.Decision) (all []reader.Decision) {
	for {
		first := -1
		for i := range parts {
			if len(parts[i]) > 0 && (first < 0 || parts[i][0].StoredAt.Before(parts[first][0].StoredAt)) {
				first = i
			}
		}
		if first < 0 {
			return all
		}
		all = append(all, parts[first][0])
		parts[first] = parts[first][1:]
	}
}
