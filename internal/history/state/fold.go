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

// Denial is the first denied decision of a path, in the order of storing.
type Denial struct {
	Path string
	Version
	StoredAt time.Time
}

// PathRevision names a revision of a path's policies.
type PathRevision struct{ Path, Revision string }

// Rate counts the decisions of a path and revision.
type Rate struct {
	PathRevision
	First, Last     time.Time // stored_at
	Allowed, Denied int64
}

// Fold folds a batch of decisions into states.
type Fold struct {
	Counts Counts
	Flips  []Flip // in the order of storing
	room   int64
	states map[Key]*folded
	asked  map[Key]bool
	hashes map[said]Hash // of answers, as most are alike
	denied map[string]Denial
	rates  map[PathRevision]*Rate
}

type said struct {
	verdict          verdict.Verdict
	revision, answer string
}

// mostHashes limits the answers whose hashes are kept.
const mostHashes = 10_000

// hash is [Decision.Hash].
func (f *Fold) hash(d *Decision) Hash {
	of := said{d.Verdict, d.Revision, d.Answer}
	h, known := f.hashes[of]
	if known {
		return h
	}
	if len(f.hashes) >= mostHashes {
		clear(f.hashes)
	}
	h = d.Hash()
	f.hashes[of] = h
	return h
}

type folded struct {
	State
	known, changed bool
}

// New makes a fold on the known states of a batch. room limits how many states it may add.
func New(known []State, room int64) *Fold {
	f := &Fold{room: room, states: make(map[Key]*folded, len(known)), asked: map[Key]bool{}, hashes: map[said]Hash{}, denied: map[string]Denial{}, rates: map[PathRevision]*Rate{}}
	f.Known(known)
	return f
}

// Known adds known states of keys that the fold does not have yet.
func (f *Fold) Known(states []State) {
	for i := range states {
		f.states[states[i].Key] = &folded{State: states[i], known: true}
	}
}

// Asked says whether the fold has a state of a key, or was told that there is none. It notes the key.
func (f *Fold) Asked(k Key) bool {
	if f.asked[k] {
		return true
	}
	f.asked[k] = true
	return false
}

// Size is the number of keys that the fold has.
func (f *Fold) Size() int { return len(f.asked) }

// Add folds the next decision, in the order of storing. The state of its key must be known to the fold, if it has one.
func (f *Fold) Add(d *Decision) {
	f.count(d)
	s := f.states[d.Key]
	if s == nil {
		if f.room <= 0 {
			f.Counts.Full++
			return
		}
		f.room--
		s = &folded{}
		f.states[d.Key] = s
	}
	effect, flip := s.apply(d, f.hash(d))
	s.changed = s.changed || effect != Repeated
	if flip != nil {
		f.Flips = append(f.Flips, *flip)
	}
	*f.Counts.of(effect)++
}

func (f *Fold) count(d *Decision) {
	if d.Verdict == verdict.Denied {
		if _, known := f.denied[d.Path]; !known {
			f.denied[d.Path] = Denial{d.Path, d.Version, d.StoredAt}
		}
	}
	if d.Revision == "" || d.Verdict != verdict.Allowed && d.Verdict != verdict.Denied {
		return
	}
	of := PathRevision{d.Path, d.Revision}
	r := f.rates[of]
	if r == nil {
		r = &Rate{PathRevision: of, First: d.StoredAt}
		f.rates[of] = r
	}
	if r.Last = d.StoredAt; d.Verdict == verdict.Denied {
		r.Denied++
	} else {
		r.Allowed++
	}
}

// Changed returns the states that changed, in the order of their keys, and how many of them are new.
func (f *Fold) Changed() (states []State, added int64) {
	for _, s := range f.states {
		if !s.changed {
			continue
		}
		states = append(states, s.State)
		if !s.known {
			added++
		}
	}
	slices.SortFunc(states, func(a, b State) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), strings.Compare(a.Path, b.Path))
	})
	return states, added
}

// Denials returns the first denial of each path in the batch, in the order of paths.
func (f *Fold) Denials() []Denial {
	out := make([]Denial, 0, len(f.denied))
	for _, d := range f.denied {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Denial) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Rates returns the counts of the batch, in the order of paths and revisions.
func (f *Fold) Rates() []Rate {
	out := make([]Rate, 0, len(f.rates))
	for _, r := range f.rates {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Rate) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Revision, b.Revision))
	})
	return out
}

// DenyRate is the share of denied decisions among those that were allowed or denied, 0 to 1; 0 if there are none.
func (r *Rate) DenyRate() float64 {
	if r.Allowed+r.Denied == 0 {
		return 0
	}
	return float64(r.Denied) / float64(r.Allowed+r.Denied)
}

// Comparison is a revision and the one before it on the same path.
type Comparison struct {
	Rate
	Before *Rate // nil: there is none with as many decisions
}
