package commitnote

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spool is what a note says of one spool.
type Spool struct {
	ID    string // 1 to 32 lower-case letters and digits
	Since int64  // above 0; it rises with each change of Holds
	Holds bool   // it may have records
}

// Note is what commits say of spools. The zero value says of none.
type Note struct {
	spools map[string]Spool
	others bool  // there were more that may have records than a note names
	before int64 // Unix seconds; 0: none. What was committed earlier may be in a spool that no note names
}

const (
	prefix  = "docket1"
	others  = "+"
	before  = "?" // and Unix seconds
	longest = 32  // characters of an id
	// mostHolding and mostEmpty limit the spools that a note names, so that it stays below 4,096 bytes. That is the limit
	// of a broker (offset.metadata.max.bytes).
	mostHolding, mostEmpty = 48, 16
)

// Of is the note of one spool.
func Of(s Spool) Note { return Note{spools: map[string]Spool{s.ID: s}} }

// Unnoted is the note of commits that had none, until a time.
func Unnoted(until time.Time) Note { return Note{before: max(1, until.Unix()+1)} }

// Parse reads a note. It returns false of any other text, as that of an earlier release or of another program.
func Parse(text string) (n Note, ok bool) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || rest != "" && rest[0] != ' ' {
		return Note{}, false
	}
	n.spools = map[string]Spool{}
	for _, part := range strings.Fields(rest) {
		if part == others {
			n.others = true
			continue
		}
		if at, ok := strings.CutPrefix(part, before); ok {
			seconds, err := strconv.ParseInt(at, 10, 63)
			if err != nil || seconds <= 0 {
				return Note{}, false
			}
			n.before = max(n.before, seconds)
			continue
		}
		s, ok := parseSpool(part)
		if !ok {
			return Note{}, false
		}
		n.add(s)
	}
	return n, true
}

func parseSpool(text string) (s Spool, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || !validID(parts[0]) || parts[2] != "0" && parts[2] != "1" {
		return s, false
	}
	since, err := strconv.ParseInt(parts[1], 10, 63)
	return Spool{parts[0], since, parts[2] == "1"}, err == nil && since > 0
}

func validID(id string) bool {
	return id != "" && len(id) <= longest && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// add takes over what is newer. Of two that are equally new, the one that may have records counts.
func (n *Note) add(s Spool) {
	had, there := n.spools[s.ID]
	if !there || s.Since > had.Since || s.Since == had.Since && s.Holds {
		n.spools[s.ID] = s
	}
}

// Join returns the newest of both notes for each spool.
func (n Note) Join(o Note) Note {
	all := Note{maps.Clone(n.spools), n.others || o.others, max(n.before, o.before)}
	if all.spools == nil {
		all.spools = map[string]Spool{}
	}
	for _, s := range o.spools {
		all.add(s)
	}
	return all
}

// Before returns the time before which offsets were committed without a note. Their records may be in a spool that no
// note names. It is zero if there are none.
func (n Note) Before() time.Time {
	if n.before == 0 {
		return time.Time{}
	}
	return time.Unix(n.before, 0)
}

// Holding returns the ids of the spools that may have records, in order. More is true if there are others without a name.
func (n Note) Holding() (ids []string, more bool) {
	for _, s := range n.spools {
		if s.Holds {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	return ids, n.others
}

// Holds reports whether a spool that the note knows, with or without its name, may have records.
func (n Note) Holds() bool {
	for _, s := range n.spools {
		if s.Holds {
			return true
		}
	}
	return n.others
}

// String returns the text of a note, below 4,096 bytes.
func (n Note) String() string { return n.with(nil) }

// with returns the text of a note that surely names one more spool, of which the note says nothing.
func (n Note) with(own *Spool) string {
	all := slices.SortedFunc(maps.Values(n.spools), func(a, b Spool) int { // the newest first
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.ID, b.ID))
	})
	var b strings.Builder
	b.WriteString(prefix)
	name := func(s Spool, holds string) {
		b.WriteString(" " + s.ID + "." + strconv.FormatInt(s.Since, 10) + holds)
	}
	if own != nil {
		name(*own, map[bool]string{true: ".1", false: ".0"}[own.Holds])
	}
	holding, empty, more := 0, 0, n.others
	for _, s := range all {
		switch {
		case s.Holds && holding == mostHolding:
			more = true
		case !s.Holds && empty == mostEmpty:
		case s.Holds:
			holding++
			name(s, ".1")
		default:
			empty++
			name(s, ".0")
		}
	}
	if more {
		b.WriteString(" " + others)
	}
	if n.before > 0 {
		b.WriteString(" " + before + strconv.FormatInt(n.before, 10))
	}
	return b.String()
}
