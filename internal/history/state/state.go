package state

import (
	"cmp"
	"crypto/sha256"
	"strings"
	"time"

	"docket/internal/record/verdict"
)

// Key names a state.
type Key struct{ Subject, Path string }

// MostKey limits subject and path, in bytes each. Decisions with longer ones have no state.
const MostKey = 1000

// Version orders decisions: by timestamp, then by id, byte by byte.
type Version struct {
	Time time.Time // in UTC, with microseconds
	ID   string    // decision_id
}

// Compare returns -1, 0 or 1, as v is older than o, the same or newer.
func (v Version) Compare(o Version) int {
	return cmp.Or(v.Time.Compare(o.Time), strings.Compare(v.ID, o.ID))
}

// Hash is of an answer: two decisions with the same hash say the same.
type Hash [16]byte

// Decision is the part of a stored decision that a state needs.
type Decision struct {
	Key
	Version
	Verdict  verdict.Verdict
	Revision string // of the bundles, as in explanations; empty: none
	Answer   string // the rest of the answer, such as a hash of its result; empty: the verdict says all
	StoredAt time.Time
	// Left says that its day had left the table when it was stored. So it may be one that the state had before.
	Left bool
}

// Hash is that of verdict, revision and answer.
func (d *Decision) Hash() Hash {
	sum := sha256.Sum256([]byte(string(d.Verdict) + "\x00" + d.Revision + "\x00" + d.Answer))
	return Hash(sum[:16])
}

// Before is the last known decision before a state began.
type Before struct {
	Verdict verdict.Verdict
	Version
}

// State is the newest answer of a subject on a path.
type State struct {
	Key
	Verdict   verdict.Verdict
	Revision  string
	Hash      Hash
	Since     Version   // the first decision with this verdict, as far as the order of storing tells
	LastSeen  time.Time // of the newest decision
	Decisions int64     // all of them, late ones included; one of a day that had left the table only if it was newer than Version
	Version   Version   // the newest decision
	Before    *Before   // nil: none is known
	Late      int64     // late decisions with another verdict after Since, which is doubtful then
	// SinceAtLatest says that the verdict may be older than Since, though newer than Before. Only states of [Join] say it.
	SinceAtLatest bool
	Shards        []string // that have decisions of it; nil: there is one database alone
	Lacks         *Lacks   // fields that are not exact, as a shard removed states or had no room; nil: none
}

// Doubtful reports whether Since may be wrong.
func (s *State) Doubtful() bool { return s.Late > 0 || s.SinceAtLatest || s.Lacks.Has("since") }

// Flip is a change of the verdict of a subject on a path.
type Flip struct {
	ID int64 // in the order of storing; 0: not stored yet
	Key
	Was, Verdict          verdict.Verdict
	WasRevision, Revision string
	Version                       // the decision with Verdict
	WasVersion            Version // the decision with Was
	StoredAt              time.Time
	Late                  bool // it was stored after a newer decision, and did not change the state
	// Shard noted it, between two of its own decisions; empty: there is one database alone.
	Shard string
}

// Effect is the result of one decision.
type Effect uint8

// The effects.
const (
	Began    Effect = iota // the first decision of its subject and path
	Same                   // newer, with an equal hash
	Changed                // newer, with another hash and the same verdict
	Flipped                // newer, with another verdict
	Obsolete               // older than the state
	Repeated               // one that the state names: nothing changes
)

// Apply folds the next decision, in the order of storing, into a state of its key. The zero state is that of no
// decision. flip is nil, or the flip that the decision is.
func (s *State) Apply(d *Decision) (effect Effect, flip *Flip) { return s.apply(d, d.Hash()) }

func (s *State) apply(d *Decision, hash Hash) (effect Effect, flip *Flip) {
	if s.Decisions == 0 {
		*s = State{Key: d.Key, Verdict: d.Verdict, Revision: d.Revision, Hash: hash, Since: d.Version, LastSeen: d.Time, Decisions: 1, Version: d.Version}
		return Began, nil
	}
	if d.Version == s.Version || d.Version == s.Since || s.Before != nil && d.Version == s.Before.Version {
		return Repeated, nil
	}
	if d.Version.Compare(s.Version) < 0 {
		if !d.Left {
			s.Decisions++
		}
		return Obsolete, s.late(d)
	}
	s.Decisions++
	effect = Same
	if d.Verdict != s.Verdict {
		effect, flip = Flipped, s.flip(d, s.Version, s.Verdict, s.Revision)
		s.Before, s.Since, s.Late = &Before{s.Verdict, s.Version}, d.Version, 0
	}
	if hash != s.Hash {
		effect = max(effect, Changed)
		s.Verdict, s.Revision, s.Hash = d.Verdict, d.Revision, hash
	}
	s.Version, s.LastSeen = d.Version, d.Time
	return effect, flip
}

// late notes a decision that is older than the state. It does not change the verdict. Since becomes earlier if it shows
// that the verdict is older, and doubtful if it shows another verdict in between.
func (s *State) late(d *Decision) *Flip {
	was := s.Before
	switch {
	case was != nil && d.Version.Compare(was.Version) < 0: // before all that the state tells of
		return nil
	case d.Version.Compare(s.Since) > 0:
		if d.Verdict == s.Verdict {
			return nil
		}
		if d.Left { // it may be counted, and its flip noted: once is enough for doubt
			s.Late = max(s.Late, 1)
			return nil
		}
		s.Late++
		f := s.flip(d, s.Version, s.Verdict, s.Revision)
		f.Late = true
		return f
	case d.Verdict == s.Verdict:
		s.Since = d.Version
		return nil
	}
	s.Before = &Before{d.Verdict, d.Version}
	if d.Left || was != nil && was.Verdict == d.Verdict { // a flip of a day that left may be noted
		return nil
	}
	f := s.flip(d, s.Version, s.Verdict, s.Revision) // the revision of the decision at Since is not known any more
	f.Late = true
	return f
}

func (s *State) flip(d *Decision, from Version, was verdict.Verdict, revision string) *Flip {
	return &Flip{
		Key: d.Key, Was: was, Verdict: d.Verdict, WasRevision: revision, Revision: d.Revision, Version: d.Version, WasVersion: from, StoredAt: d.StoredAt,
	}
}
