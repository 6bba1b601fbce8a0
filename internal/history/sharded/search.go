package sharded

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"docket/internal/history/reader"
	"docket/internal/record/escape"
)

// cursor is the place of a search in all shards.
type cursor struct {
	Oldest bool      `json:"o,omitempty"`
	Last   *position `json:"l,omitempty"` // the last decision that was returned; nil: none yet
	// After is the cursor of each shard that has more, by name. Decisions behind it up to Last were returned already.
	After map[string]string `json:"a"`
	// Missed are the shards that an earlier page lacks. The later pages lack them, too.
	Missed []string `json:"m,omitempty"`
}

// position is a place in the order of an answer. Equal decisions of two shards are both returned, in the shards' order.
type position struct {
	Time  time.Time `json:"t"`
	ID    string    `json:"i"`
	Shard int       `json:"s"`
}

func (c cursor) text() string {
	if c.Last != nil {
		last := *c.Last
		last.Time = escape.Time(last.Time)
		c.Last = &last
	}
	text, _ := json.Marshal(c) //nolint:errchkjson // texts and times that can be written
	return "s" + base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(text string) (c cursor, err error) {
	plain, ours := strings.CutPrefix(text, "s")
	raw, err := base64.RawURLEncoding.DecodeString(plain)
	if !ours || err != nil || json.Unmarshal(raw, &c) != nil {
		return c, reader.ErrCursor
	}
	return c, nil
}

// CursorAt implements [reader.Placing]. Each shard begins at the time of the decision. Those up to it are left out again.
// Without a shard, each begins behind that identity: a time with many decisions would take many pages to leave out.
func (s *Store) CursorAt(at reader.Spot, shard string, oldest bool) string {
	from := reader.Spot{Time: at.Time} // before all of that time
	if !oldest {
		from.Time = from.Time.Add(time.Microsecond) // cursors have no finer one
	}
	c := cursor{Oldest: oldest, Last: &position{Time: at.Time, ID: at.ID}, After: make(map[string]string, len(s.shards))}
	if shard == "" {
		from, c.Last.Shard = at, len(s.shards)-1
	}
	for i, one := range s.shards {
		if c.After[one.Name] = from.Cursor(oldest); one.Name == shard {
			c.Last.Shard = i
		}
	}
	return c.text()
}

// errEarlier is why a later page lacks a shard.
var errEarlier = errors.New("an earlier page lacks it; search again from the beginning")

// part is the page of one shard.
type part struct {
	decisions []reader.Decision // behind the last that was returned
	after     string            // cursor that led here
	next      string            // cursor behind all of them
	open      bool              // there is more behind them
	reached   time.Time         // of a page that ended early
	read      *position         // the last decision of the page, returned before or not
	archives  bool              // archived days were searched, too
	gaps      []reader.Gap      // archived days that were not read completely
}

// Search implements [reader.Store]. A page asks each shard for a page. The answer ends where a shard that has more was
// read to, because the next decisions of that shard may come before those of others.
func (s *Store) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	c := cursor{Oldest: p.Oldest}
	if p.After == "" {
		c.After = make(map[string]string, len(s.shards))
		for _, one := range s.shards {
			c.After[one.Name] = ""
		}
	} else {
		var err error
		if c, err = parseCursor(p.After); err != nil || c.Oldest != p.Oldest || !s.knows(c) {
			return reader.Found{}, reader.ErrCursor
		}
	}
	parts := make([]part, len(s.shards))
	err := s.ask(ctx, func(ctx context.Context, i int, one reader.Store) (err error) {
		after, more := c.After[s.shards[i].Name]
		if !more {
			return errNotAsked
		}
		parts[i], err = s.page(ctx, i, one, f, p, c, after)
		return err
	})
	if !usable(err) {
		return reader.Found{}, err
	}
	missed, err := s.lacking(&c, err)
	if err != nil {
		return reader.Found{}, err
	}
	found := s.merged(parts, c, p)
	return found, reader.Told(ctx, missed)
}

// knows reports whether a cursor names shards of this store alone.
func (s *Store) knows(c cursor) bool {
	for name := range c.After {
		if !slices.ContainsFunc(s.shards, func(o Shard) bool { return o.Name == name }) {
			return false
		}
	}
	return true
}

// lacking takes failed shards out of the search for good. Without that, a later page would begin behind decisions that
// no page had. If none is left, the error of the first is the result.
func (s *Store) lacking(c *cursor, failed error) (missed, err error) {
	var all reader.Parts
	for _, name := range c.Missed {
		_ = all.Pass(&reader.PartialError{Missed: []reader.Missed{{Shard: name, Err: errEarlier}}}) // it takes it
	}
	partial := reader.AsPartial(failed)
	_ = all.Pass(failed) // it takes it
	if partial == nil {
		return all.Err(), nil
	}
	for _, name := range partial.Missing() {
		delete(c.After, name)
		c.Missed = append(c.Missed, name)
	}
	if len(c.Missed) == len(s.shards) {
		return nil, partial.Missed[0].Err
	}
	return all.Err(), nil
}

// page reads a shard until it has decisions that were not returned, or has no more, or runs out of time.
func (s *Store) page(ctx context.Context, i int, one reader.Store, f reader.Filter, p reader.Page, c cursor, after string) (part, error) {
	var archives bool
	var gaps []reader.Gap
	for {
		p.After = after
		found, err := one.Search(ctx, f, p)
		if err != nil {
			return part{}, err
		}
		got := part{after: after, next: found.Next, open: found.Next != "", reached: found.Reached, decisions: s.named(i, found.Decisions), archives: archives || found.Archives}
		for _, g := range found.NotLooked { // each page names the days that it lacks
			if !slices.Contains(gaps, g) {
				gaps = append(gaps, g)
			}
		}
		archives, got.gaps = got.archives, gaps
		if n := len(found.Decisions); n > 0 {
			got.read = placeOf(found.Decisions[n-1], i)
		}
		if c.Last != nil {
			got.decisions = slices.DeleteFunc(got.decisions, func(d reader.Decision) bool {
				return c.compare(placeOf(d, i), c.Last) <= 0
			})
		}
		if len(got.decisions) > 0 || !got.open || !got.reached.IsZero() {
			return got, nil
		}
		after = found.Next
	}
}

func placeOf(d reader.Decision, shard int) *position { return &position{d.Time, d.ID, shard} }

// compare orders places as the answer does.
func (c cursor) compare(a, b *position) int {
	turn := -1
	if c.Oldest {
		turn = 1
	}
	return cmp.Or(turn*a.Time.Compare(b.Time), turn*strings.Compare(a.ID, b.ID), cmp.Compare(a.Shard, b.Shard))
}

// merged makes the answer of the pages of all shards, and its cursor.
func (s *Store) merged(parts []part, c cursor, p reader.Page) reader.Found {
	var found reader.Found
	next := make([]int, len(parts)) // in the decisions of each
	for len(found.Decisions) < p.Limit {
		first := -1
		for i := range parts {
			if next[i] < len(parts[i].decisions) && (first < 0 || c.compare(placeOf(parts[i].decisions[next[i]], i), placeOf(parts[first].decisions[next[first]], first)) < 0) {
				first = i
			}
		}
		if first < 0 || !c.settled(parts, first, placeOf(parts[first].decisions[next[first]], first)) {
			break
		}
		d := parts[first].decisions[next[first]]
		found.Decisions = append(found.Decisions, d)
		c.Last = placeOf(d, first)
		next[first]++
	}
	left := false
	for i, one := range s.shards {
		found.Archives = found.Archives || parts[i].archives
		for _, g := range parts[i].gaps {
			g.Name = "shard " + one.Name + ", " + g.Name
			found.NotLooked = append(found.NotLooked, g)
		}
		switch part := &parts[i]; {
		case next[i] < len(part.decisions):
			c.After[one.Name], left = part.after, true
		case part.open:
			c.After[one.Name], left = part.next, true
		default:
			delete(c.After, one.Name)
		}
	}
	if left {
		found.Next = c.text()
	}
	if left && len(found.Decisions) < p.Limit {
		found.Reached = c.reached(parts)
	}
	return found
}

// settled reports whether no shard can have a decision before this one that was not read.
func (c cursor) settled(parts []part, of int, at *position) bool {
	for i := range parts {
		other := &parts[i]
		if i == of || !other.open || other.read != nil && c.compare(at, other.read) <= 0 {
			continue
		}
		if other.reached.IsZero() || !c.before(at.Time, other.reached) {
			return false
		}
	}
	return true
}

// before reports whether a time comes before another in the order of the answer.
func (c cursor) before(a, b time.Time) bool {
	if c.Oldest {
		return a.Before(b)
	}
	return b.Before(a)
}

// reached returns the place of the shard that came least far.
func (c cursor) reached(parts []part) (least time.Time) {
	for i := range parts {
		at := parts[i].reached
		if parts[i].open && at.IsZero() && parts[i].read != nil {
			at = parts[i].read.Time
		}
		if parts[i].open && !at.IsZero() && (least.IsZero() || c.before(at, least)) {
			least = at
		}
	}
	return least
}
