// Package readertest has a store of decisions in memory, for tests of its users.
package readertest

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"docket/internal/history/reader"
)

// Store is a [reader.Store] in memory.
type Store struct {
	mu     sync.Mutex
	stored []reader.Decision // in the order in which they were stored
	err    error
	begins error // of Begins only
	edits  error // of Edits only
	edited map[string]reader.Edit
	asked  []reader.Filter
	// Part limits the decisions that a search reads before it ends with a short page; 0: no limit.
	Part int
	// Now ends a search without an end; nil: time.Now.
	Now func() time.Time
	// FailsAfter is the error of each page of a search after the first one, if set.
	FailsAfter error
	// AfterFollow is called after each look of Follow, if set.
	AfterFollow func()
}

// Add stores decisions.
func (s *Store) Add(decisions ...reader.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = append(s.stored, decisions...)
}

// Fail makes everything fail with err from now on; nil: not any more.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// FailBegins makes lookups by the first characters of an id fail with err from now on.
func (s *Store) FailBegins(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begins = err
}

// Edited says that an edit produced the decision with an id.
func (s *Store) Edited(id string, e reader.Edit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.edited == nil {
		s.edited = map[string]reader.Edit{}
	}
	s.edited[id] = e
}

// FailEdits makes Edits fail with err from now on.
func (s *Store) FailEdits(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edits = err
}

// Edits implements [reader.Editions].
func (s *Store) Edits(_ context.Context, decisions []reader.Decision, whole bool) (map[int]reader.Edit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[int]reader.Edit{}
	for i, d := range decisions {
		if e, ok := s.edited[d.ID]; ok {
			if !whole {
				e.Diff, e.Bytes = "", nil
			}
			found[i] = e
		}
	}
	return found, s.edits
}

// Asked returns the filters of all searches so far.
func (s *Store) Asked() []reader.Filter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// compare orders decisions by identity.
func compare(a, b reader.Decision) int {
	return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID))
}

// Search implements [reader.Store].
func (s *Store) Search(_ context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, f)
	if s.err != nil {
		return reader.Found{}, s.err
	}
	if p.After != "" && s.FailsAfter != nil {
		return reader.Found{}, s.FailsAfter
	}
	all := slices.Clone(s.stored)
	turn := 1
	if !p.Oldest {
		turn = -1
	}
	slices.SortFunc(all, func(a, b reader.Decision) int { return turn * compare(a, b) })
	after, err := reader.ParseCursor(p.After, p.Oldest)
	if err != nil {
		return reader.Found{}, err
	}
	if p.After != "" {
		all = slices.DeleteFunc(all, func(d reader.Decision) bool { return turn*reader.SpotOf(d).Compare(after) <= 0 })
	}
	var found reader.Found
	for i, d := range all {
		if len(found.Decisions) == p.Limit || s.Part > 0 && i == s.Part {
			found.Next = reader.SpotOf(all[i-1]).Cursor(p.Oldest)
			if len(found.Decisions) < p.Limit {
				found.Reached = all[i-1].Time
			}
			break
		}
		if Fits(f, d) {
			found.Decisions = append(found.Decisions, shown(d, p.Payload))
		}
	}
	return found, nil
}

func shown(d reader.Decision, payload bool) reader.Decision {
	if !payload {
		d.Raw = nil
	}
	return d
}

// Having returns the stored decisions with one of the identities.
func (s *Store) Having(_ context.Context, of []reader.Spot) ([]reader.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []reader.Decision
	for _, d := range s.stored {
		if slices.Contains(of, reader.SpotOf(d)) {
			all = append(all, d)
		}
	}
	return all, s.err
}

// ByID implements [reader.Store].
func (s *Store) ByID(_ context.Context, id string) ([]reader.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []reader.Decision
	for _, d := range s.stored {
		if d.ID == id {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, compare)
	return all, s.err
}

// Begins implements [reader.Store].
func (s *Store) Begins(_ context.Context, prefix string, limit int) ([]reader.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.stored)
	slices.SortFunc(all, func(a, b reader.Decision) int { return cmp.Or(strings.Compare(a.ID, b.ID), a.Time.Compare(b.Time)) })
	var found []reader.Decision
	for _, d := range all {
		if n := len(found); n < limit && strings.HasPrefix(d.ID, prefix) && (n == 0 || found[n-1].ID != d.ID) {
			found = append(found, shown(d, false))
		}
	}
	if err := cmp.Or(s.err, s.begins); err != nil {
		return nil, err
	}
	return found, nil
}

// Follow implements [reader.Store].
func (s *Store) Follow(_ context.Context, f reader.Filter, t reader.Tail, limit int, payload bool) ([]reader.Decision, reader.Tail, error) {
	if after := s.AfterFollow; after != nil {
		defer after() // after the unlock
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, t, s.err
	}
	n, ok := t.Mark.(int)
	if !ok {
		return nil, reader.Tail{Mark: len(s.stored)}, nil
	}
	var found []reader.Decision
	for ; n < len(s.stored) && len(found) < limit; n++ {
		if Fits(f, s.stored[n]) {
			found = append(found, shown(s.stored[n], payload))
		}
	}
	return found, reader.Tail{Mark: n}, nil
}

// Stats implements [reader.Store].
func (s *Store) Stats(_ context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	until := q.Until
	if until.IsZero() {
		until = time.Now()
		if s.Now != nil {
			until = s.Now()
		}
	}
	f := reader.Filter{Since: q.Since, Until: until, Paths: q.Paths, Services: q.Services}
	var all []reader.Stats
	for _, d := range s.stored {
		name := d.Service
		if q.ByPath {
			name = d.Path
		}
		fits := Fits(f, d)
		if textOf(d.Path) == reader.OtherPaths && len(q.Paths)+len(q.Services) > 0 { // like counts, whose line can have any path
			fits, name = Fits(reader.Filter{Since: f.Since, Until: f.Until}, d), d.Path
		}
		if !fits {
			continue
		}
		from := q.Since.Add(d.Time.Sub(q.Since).Truncate(q.Step))
		line := reader.Stats{From: from, Name: textOf(name), Counts: map[reader.Verdict]int64{}}
		i := slices.IndexFunc(all, func(o reader.Stats) bool { return o.Name == line.Name && o.From.Equal(from) })
		if i < 0 {
			i = len(all)
			all = append(all, line)
		}
		all[i].Counts[d.Verdict]++
	}
	slices.SortFunc(all, reader.Stats.Compare)
	return all, nil
}

func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Fits reports whether a decision matches a filter. It is simple and slow.
func Fits(f reader.Filter, d reader.Decision) bool {
	among := func(values []string, fits func(string) bool) bool {
		return len(values) == 0 || slices.ContainsFunc(values, fits)
	}
	if !f.Since.IsZero() && d.Time.Before(f.Since) || !f.Until.IsZero() && !d.Time.Before(f.Until) {
		return false
	}
	if len(f.Verdicts) > 0 && !slices.Contains(f.Verdicts, d.Verdict) {
		return false
	}
	var labels map[string]string
	_ = json.Unmarshal(d.Labels, &labels)
	for name, value := range f.Labels {
		if got, there := labels[name]; !there || got != value {
			return false
		}
	}
	for _, m := range f.Matches {
		if !matches(m, d.Raw) {
			return false
		}
	}
	return among(f.Paths, func(p string) bool {
		below, all := strings.CutSuffix(p, "/*")
		return textOf(d.Path) == p || all && strings.HasPrefix(textOf(d.Path), below+"/")
	}) && among(f.Services, func(name string) bool { return d.Service != nil && *d.Service == name }) &&
		among(f.RequestedBy, func(by string) bool {
			host, _, err := net.SplitHostPort(textOf(d.RequestedBy))
			return textOf(d.RequestedBy) == by || err == nil && host == by
		})
}

func matches(m reader.Match, raw []byte) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	var steps []string
	if m.In != "raw" {
		steps = []string{m.In}
	}
	if m.Pointer != "" {
		steps = append(steps, strings.Split(m.Pointer[1:], "/")...)
	}
	for _, step := range steps {
		there := false
		switch of := v.(type) {
		case map[string]any:
			v, there = of[step]
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(of) {
				v, there = of[i], true
			}
		}
		if !there {
			return false
		}
	}
	if m.Value == nil {
		return true
	}
	var want any
	if json.Unmarshal(m.Value, &want) != nil {
		return false
	}
	a, errA := json.Marshal(v)
	b, errB := json.Marshal(want)
	return errA == nil && errB == nil && string(a) == string(b)
}

var (
	_ reader.Store    = (*Store)(nil)
	_ reader.Editions = (*Store)(nil)
)
