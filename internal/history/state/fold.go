package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"docket/internal/record/verdict"
)

// Counts are what a fold did.
type Counts struct {
	Began, Same, Changed, Flipped, Obsolete, Repeated int64
	Full                                              int64 // decisions of keys for which there was no room
}

// of returns the counter of an effect.
func (c *Counts) of(e Effect) *int64 {
	switch e {
	case Began:
		return &c.Began
	case Same:
		return &c.Same
	case Changed:
		return &c.Changed
	case Flipped:
		return &c.Flipped
	case Obsolete:
		return &c.Obsolete
	default:
		return &c.Repeated
	}
}

// Applied is the number of decisions that are newer than their state was.
func (c Counts) Applied() int64 { return c.Began + c.Same + c.Changed + c.Flipped }

// Add adds the counts of another fold.
func (c *Counts) Add(o Counts) {
	c.Began, c.Same, c.Changed, c.Flipped = c.Began+o.Began, c.Same+o.Same, c.Changed+o.Changed, c.Flipped+o.Flipped
	c.Obsolete, c.Repeated, c.Full = c.Obsolete+o.Obsolete, c.Repeated+o.Repeated, c.Full+o.Full
}

// Fold folds decisions into states, one span of storing after another. The decisions of a span are gathered in any order,
// and folded in the order of storing when the span is settled.
type Fold struct {
	Counts  Counts
	Flips   []Flip // of settled spans, in the order of storing
	room    int64
	size    int
	paths   map[string]*pathFold
	held    []held    // of the span
	touched []*folded // with decisions in the span
	unknown []*folded // keys that may have a state that the fold was not told of
	scratch []held
}

// folded is a state and what the span has for it.
type folded struct {
	State
	path    *pathFold
	known   bool // the table has it
	changed bool
	moved   bool  // more changed than last_seen, decisions and version
	full    bool  // there was no room for it
	held    int32 // the last of the span's decisions, its place in [Fold.held] and one more; 0: none
}

// New makes a fold on the known states of a batch. room limits how many states it may add.
func New(known []State, room int64) *Fold {
	f := &Fold{room: room, paths: map[string]*pathFold{}}
	f.Known(known)
	return f
}

// Known tells the fold of states that the table has. It must know those of gathered decisions before they are settled.
func (f *Fold) Known(states []State) {
	for i := range states {
		s := f.of(f.path([]byte(states[i].Path)), []byte(states[i].Subject))
		s.State, s.known = states[i], true
	}
}

// Unknown returns the keys of which the fold does not know whether they have a state, and forgets that it was asked.
func (f *Fold) Unknown() []Key {
	keys := make([]Key, 0, len(f.unknown))
	for _, s := range f.unknown {
		if !s.known {
			keys = append(keys, s.Key)
		}
	}
	f.unknown = f.unknown[:0]
	return keys
}

// Size is the number of keys that the fold has, and of paths with decisions that have no state.
func (f *Fold) Size() int { return f.size }

// Add folds the next decision, in the order of storing. The state of its key must be known to the fold, if it has one.
func (f *Fold) Add(d *Decision) {
	f.Gather(Row{
		Subject: []byte(d.Subject), Path: []byte(d.Path), ID: []byte(d.ID), Time: d.Time.UnixMicro(), StoredAt: d.StoredAt.UnixMicro(),
		Said: &Said{d.Verdict, d.Revision, d.Hash()}, Left: d.Left,
	})
	f.Settle()
}

// Gather takes a decision of the span, and says why it has no state; empty: it has one. It keeps nothing of the row's
// bytes. A decision without a state counts for the denials and rates of its path.
func (f *Fold) Gather(r Row) (skip string) {
	skip = r.skip()
	switch {
	case len(r.Path) == 0 || len(r.Path) > MostKey:
	case skip != "":
		f.hold(f.stateless(f.path(r.Path)), r)
	default:
		f.hold(f.of(f.path(r.Path), r.Subject), r)
	}
	return skip
}

func (f *Fold) hold(s *folded, r Row) {
	if s.held == 0 {
		f.touched = append(f.touched, s)
	}
	f.held = append(roomier(f.held), held{order{r.StoredAt, r.Time, string(r.ID)}, r.Said, s.held, r.Left})
	s.held = int32(len(f.held)) //nolint:gosec // a span has fewer
}

// Settle ends the span: it folds what was gathered, in the order of storing. The next span is stored after this one.
func (f *Fold) Settle() {
	f.admit()
	from := len(f.Flips)
	for _, s := range f.touched {
		f.settle(s)
	}
	inOrderOfStoring(f.Flips[from:])
	f.empty()
}

// ForgetHalf is Forget. It returns by when half of the gathered decisions were stored, and in how much time the
// middle half of them was; zero of none.
func (f *Fold) ForgetHalf() (half time.Time, middle time.Duration) {
	defer f.Forget()
	n := len(f.held)
	if n == 0 {
		return half, 0
	}
	stored := make([]int64, n)
	for i := range f.held {
		stored[i] = f.held[i].storedAt
	}
	slices.Sort(stored)
	return micro(stored[(n-1)/2]), time.Duration(stored[3*n/4]-stored[n/4]) * time.Microsecond
}

// Forget ends the span without what was gathered, as if it had not been.
func (f *Fold) Forget() {
	for _, s := range f.touched {
		s.held = 0
	}
	f.empty()
}

func (f *Fold) empty() {
	clear(f.held)
	f.held, f.touched = f.held[:0], f.touched[:0]
}

// inOrderOfStoring sorts flips. They are large, so their places are sorted first.
func inOrderOfStoring(flips []Flip) {
	at := make([]held, len(flips))
	for i := range flips {
		f := &flips[i]
		at[i] = held{order: order{f.StoredAt.UnixMicro(), f.Time.UnixMicro(), f.Version.ID}, next: int32(i)} //nolint:gosec // a span has fewer
	}
	slices.SortFunc(at, compareHeld)
	unsorted := slices.Clone(flips)
	for i := range at {
		flips[i] = unsorted[at[i].next]
	}
}

// roomier makes room by doubling, as append copies long lists more often.
func roomier[T any](all []T) []T {
	if len(all) < cap(all) {
		return all
	}
	return slices.Grow(all, max(len(all), 16))
}

// settle folds the span's decisions of one key.
func (f *Fold) settle(s *folded) {
	all := f.inOrder(s)
	s.held = 0
	for i := range all {
		if !all[i].left { // it may have counted before
			s.path.count(&all[i])
		}
	}
	switch {
	case s == s.path.stateless:
		return
	case s.full:
		f.Counts.Full += int64(len(all))
		return
	}
	for i := range all {
		h := &all[i]
		d := Decision{Key: s.Key, Version: h.version(), Verdict: h.said.Verdict, Revision: h.said.Revision, StoredAt: micro(h.storedAt), Left: h.left}
		effect, flip := s.apply(&d, h.said.Hash)
		s.changed = s.changed || effect != Repeated
		s.moved = s.moved || effect != Repeated && effect != Same
		if flip != nil {
			f.Flips = append(roomier(f.Flips), *flip)
		}
		*f.Counts.of(effect)++
	}
}

// inOrder returns the span's decisions of one key in the order of storing. They are valid until the next call.
func (f *Fold) inOrder(s *folded) []held {
	all := f.scratch[:0]
	for at := s.held; at != 0; at = f.held[at-1].next {
		all = append(all, f.held[at-1])
	}
	slices.Reverse(all)
	if !slices.IsSortedFunc(all, compareHeld) {
		slices.SortFunc(all, compareHeld)
	}
	f.scratch = all
	return all
}

// admit gives the room that is left to new keys, in the order of storing of their first decisions.
func (f *Fold) admit() {
	var fresh []*folded
	for _, s := range f.touched {
		if s.Decisions == 0 && !s.full && s != s.path.stateless {
			fresh = append(fresh, s)
		}
	}
	if n := int64(len(fresh)); n <= f.room {
		f.room -= n
		return
	}
	first := make(map[*folded]order, len(fresh))
	for _, s := range fresh {
		first[s] = f.inOrder(s)[0].order
	}
	slices.SortFunc(fresh, func(a, b *folded) int { return first[a].compare(first[b]) })
	for _, s := range fresh[max(f.room, 0):] {
		s.full = true
	}
	f.room = 0
}

func (f *Fold) path(name []byte) *pathFold {
	p := f.paths[string(name)]
	if p == nil {
		p = &pathFold{name: string(name), states: map[string]*folded{}, rates: map[string]*rated{}}
		f.paths[p.name] = p
	}
	return p
}

// of returns what the fold has for a subject on a path. A new key is unknown.
func (f *Fold) of(p *pathFold, subject []byte) *folded {
	s := p.states[string(subject)]
	if s == nil {
		s = &folded{State: State{Key: Key{string(subject), p.name}}, path: p}
		p.states[s.Subject] = s
		f.unknown = append(f.unknown, s)
		f.size++
	}
	return s
}

// stateless returns what holds the decisions of a path that have no state. Paths without states take memory, too.
func (f *Fold) stateless(p *pathFold) *folded {
	if p.stateless == nil {
		p.stateless = &folded{path: p}
		f.size++
	}
	return p.stateless
}

// Changed returns the states that changed, in the order of their keys, and how many of them are new.
func (f *Fold) Changed() (states []State, added int64) {
	c := f.Changes()
	for _, part := range [][]*State{c.New, c.Seen, c.Moved} {
		for _, s := range part {
			states = append(states, *s)
		}
	}
	slices.SortFunc(states, func(a, b State) int { return a.compare(b.Key) })
	return states, int64(len(c.New))
}

// Changes are the states that a fold changed, each part in the order of their keys.
type Changes struct {
	New   []*State // that the table does not have
	Seen  []*State // only last_seen, decisions and version changed
	Moved []*State // all others
}

// Changes returns what is to be written.
func (f *Fold) Changes() (c Changes) {
	for _, p := range f.paths {
		for _, s := range p.states {
			switch {
			case !s.changed:
			case !s.known:
				c.New = append(c.New, &s.State)
			case s.moved:
				c.Moved = append(c.Moved, &s.State)
			default:
				c.Seen = append(c.Seen, &s.State)
			}
		}
	}
	for _, part := range [][]*State{c.New, c.Seen, c.Moved} {
		slices.SortFunc(part, func(a, b *State) int { return a.compare(b.Key) })
	}
	return c
}

func (k Key) compare(o Key) int {
	return cmp.Or(strings.Compare(k.Subject, o.Subject), strings.Compare(k.Path, o.Path))
}

func micro(n int64) time.Time { return time.UnixMicro(n).UTC() }

func (h *held) version() Version { return Version{micro(h.time), h.id} }

// Row is a decision as it is read. Its bytes are valid only for the call.
type Row struct {
	Subject, Path, ID []byte
	Time, StoredAt    int64 // microseconds since 1970
	Said              *Said
	Left              bool // as in [Decision]
}

// skip says why a decision has no state; empty: it has one.
func (r *Row) skip() string {
	switch {
	case len(r.Path) == 0:
		return SkipNoPath
	case len(r.Subject) == 0:
		return SkipNoSubject
	case len(r.Subject) > MostKey || len(r.Path) > MostKey:
		return SkipTooLong
	case r.Time-r.StoredAt > MostAhead.Microseconds():
		return SkipAhead
	}
	return ""
}

// Said is the part of a decision that many have in common.
type Said struct {
	Verdict  verdict.Verdict
	Revision string
	Hash     Hash
}

// held is a gathered decision.
type held struct {
	order
	said *Said
	next int32 // of the same key, as in [folded]
	left bool
}

// order is the order of storing: by the time of storing, and by version within the same.
type order struct {
	storedAt, time int64 // microseconds since 1970
	id             string
}

func (o order) compare(other order) int {
	return cmp.Or(cmp.Compare(o.storedAt, other.storedAt), cmp.Compare(o.time, other.time), strings.Compare(o.id, other.id))
}

func compareHeld(a, b held) int { return a.compare(b.order) }
