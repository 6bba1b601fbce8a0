package state

import (
	"slices"
	"time"
)

// Lacks says which fields of a joined state are not exact: a shard may have had decisions of the key that its state does not
// know any more, or never knew.
type Lacks struct {
	Fields []string   // in the names of JSON
	Shards []string   // that may have had such decisions
	Before *time.Time // these are older; nil: they may be of any time
}

// Has reports whether a field is not exact. Nil has none.
func (l *Lacks) Has(field string) bool { return l != nil && slices.Contains(l.Fields, field) }

// newestFields follow from the newest decision alone.
var newestFields = []string{"verdict", "revision", "hash", "last_seen", "version_ts", "version_id"}

// Doubt finds what is not exact of a state that was joined of some of these shards.
func (s *State) Doubt(marks map[string]*Mark) {
	var bound time.Time
	l := &Lacks{}
	ever := false
	for name, m := range marks {
		until := m.TrimmedBefore
		if m.FullAt != nil {
			if !slices.Contains(s.Shards, name) {
				ever = true
			}
			if until == nil || m.FullAt.After(*until) {
				until = m.FullAt // it got its state later than its first decision
			}
		}
		if until == nil {
			continue
		}
		l.Shards = append(l.Shards, name)
		if until.After(bound) {
			bound = *until
		}
	}
	if len(l.Shards) == 0 {
		return
	}
	slices.Sort(l.Shards)
	l.Fields = append(l.Fields, "decisions")
	if ever || s.Before == nil || s.Before.Time.Before(bound) {
		l.Fields = append(l.Fields, "since", "before")
	}
	if ever || s.Version.Time.Before(bound) {
		l.Fields = append(l.Fields, newestFields...)
	}
	if !ever {
		l.Before = &bound
	}
	s.Lacks = l
}
