package verify

import (
	"fmt"
	"time"

	"docket/internal/errclass"
	"docket/internal/record/home"
)

// matter is the evidence, laid out by decision.
type matter struct {
	ev      *Evidence
	truth   *Truth
	history *History
	whole   bool // a truth was given
	part    bool // it is a part of the source alone
	found   map[*Decision]*found
	rows    map[Identity][]*Row
	unequal map[Place]bool
	equal   map[comparison]bool // payloads compared so far; several invariants ask about the same pair
}

// comparison is a row and a decision whose payloads are compared.
type comparison struct {
	row      *Row
	decision *Decision
}

// found is what the evidence has of one decision.
type found struct {
	rows      []*Row // that say that it was read at its place
	forwarded []*Forwarded
}

func match(ev *Evidence, t *Truth, h *History) *matter {
	m := &matter{ev: ev, truth: t, history: h, whole: t != nil}
	if t == nil {
		m.truth = NewTruth("")
		m.truth.Spans = map[int32]Span{} // it has nothing to say about any place
	}
	if h == nil {
		m.history = &History{}
	}
	m.found = make(map[*Decision]*found, m.truth.Len())
	m.rows = make(map[Identity][]*Row, len(ev.Rows))
	m.unequal = make(map[Place]bool, len(ev.Unequal))
	m.equal = make(map[comparison]bool)
	for i := range ev.Rows {
		row := &ev.Rows[i]
		id := identity(row.ID, row.Time)
		m.rows[id] = append(m.rows[id], row)
		if d := m.truth.At(row.Place); d != nil {
			f := m.of(d)
			f.rows = append(f.rows, row)
		}
	}
	for i := range ev.Forwarded {
		f := &ev.Forwarded[i]
		if d := m.truth.At(f.Place); d != nil && !f.NoOrigin {
			of := m.of(d)
			of.forwarded = append(of.forwarded, f)
		}
	}
	for _, p := range ev.Unequal {
		m.unequal[p] = true
	}
	return m
}

// of is what was found of a decision, to add to.
func (m *matter) of(d *Decision) *found {
	f := m.found[d]
	if f == nil {
		f = &found{}
		m.found[d] = f
	}
	return f
}

// what is what was found of a decision, to read.
func (m *matter) what(d *Decision) found {
	if f := m.found[d]; f != nil {
		return *f
	}
	return found{}
}

// twin is the row with the decision's identity; nil where there is none.
func (m *matter) twin(d *Decision) *Row {
	if d.ID == "" {
		return nil
	}
	rows := m.rows[d.Identity()]
	for _, row := range rows {
		if row.Place == d.Place {
			return row
		}
	}
	if len(rows) > 0 {
		return rows[0]
	}
	return nil
}

// holds says whether a row has the decision's payload: by the row's own bytes, by what the server said, or, for a row
// of another decision, by what that one is.
func (m *matter) holds(row *Row, d *Decision) bool {
	if row.Raw != nil && d.Body != nil {
		pair := comparison{row, d}
		equal, known := m.equal[pair]
		if !known {
			equal = SameJSON(row.Raw, d.Body)
			m.equal[pair] = equal
		}
		return equal
	}
	if m.unequal[d.Place] || row.Place == d.Place {
		return !m.unequal[d.Place]
	}
	other := m.truth.At(row.Place)
	if other == nil || other.Body == nil || d.Body == nil || other.Identity() != d.Identity() {
		return true
	}
	return SameJSON(other.Body, d.Body)
}

// deserves is the code that a decision has to be dead-lettered with; empty: a row, or a duplicate of one.
func (m *matter) deserves(d *Decision) string {
	if d.Code != "" {
		return d.Code
	}
	if row := m.twin(d); row != nil && row.Place != d.Place && !m.holds(row, d) {
		return errclass.CodeIDConflict
	}
	return ""
}

// home is the decision's home: of several the one that records end in. A forwarded record with another value is none,
// nor is a row with another payload.
func (m *matter) home(d *Decision) home.Home {
	if row := m.twin(d); row != nil && m.holds(row, d) {
		if row.Place == d.Place {
			return home.Row
		}
		return home.Duplicate
	}
	best := home.None
	for _, f := range m.what(d).forwarded {
		if f.Settled || f.Value != d.Value || f.Key != d.Key {
			continue
		}
		if rank[f.Home] > rank[best] {
			best = f.Home
		}
	}
	return best
}

// rank orders the homes of forwarded records by how final they are.
var rank = map[home.Home]int{home.Spooled: 1, home.Parked: 2, home.Exhausted: 3, home.DeadLetter: 4}

// ended says whether it lies in a topic in which records end.
func (f *Forwarded) ended() bool { return f.Home == home.DeadLetter || f.Home == home.Exhausted }

// in lists what was found of a decision in a home.
func (f found) in(h home.Home) []*Forwarded {
	var list []*Forwarded
	for _, one := range f.forwarded {
		if one.Home == h {
			list = append(list, one)
		}
	}
	return list
}

// read says whether the record of a decision was committed.
func (m *matter) read(d *Decision) bool {
	return d.Offset < m.ev.Committed[d.Partition]
}

func (m *matter) homes() map[home.Home]int {
	all := make(map[home.Home]int)
	for _, d := range m.truth.list {
		all[m.home(d)]++
	}
	return all
}

// trace is all that is known of a decision.
func (m *matter) trace(d *Decision) []string {
	lines := []string{fmt.Sprintf("produced at %v, belongs %s", d.Place, belongs(m.deserves(d)))}
	if next, ok := m.ev.Committed[d.Partition]; ok {
		lines = append(lines, fmt.Sprintf("committed in partition %d up to %d", d.Partition, next))
	} else {
		lines = append(lines, fmt.Sprintf("nothing is committed in partition %d", d.Partition))
	}
	if row := m.twin(d); row != nil {
		lines = append(lines, fmt.Sprintf("its identity has a row, first read at %v%s", row.Place, stamped(", stored", row.StoredAt)))
	} else {
		lines = append(lines, "no row has its identity")
	}
	f := m.what(d)
	for _, row := range f.rows {
		if identity(row.ID, row.Time) != d.Identity() {
			lines = append(lines, "a row with another identity names its place")
		}
	}
	for _, one := range f.forwarded {
		lines = append(lines, one.told())
	}
	for _, p := range m.history.Publishes {
		for _, one := range f.forwarded {
			if p.ID != "" && p.ID == one.ID {
				lines = append(lines, fmt.Sprintf("%s published by %s to %v: %v", p.At.UTC().Format(time.RFC3339Nano), p.Process, p.Home, p.Outcome))
				break
			}
		}
	}
	return lines
}

// told is a forwarded record on one line.
func (f *Forwarded) told() string {
	text := fmt.Sprintf("%v in %s", f.Home, f.Found)
	if f.Home != home.Spooled {
		text += fmt.Sprintf("/%d/%d", f.At.Partition, f.At.Offset)
	}
	text += fmt.Sprintf(" as %s %s, attempt %d", f.Kind, f.Code, f.Attempt)
	text += stamped(", failed", f.FailedAt)
	if f.Settled {
		text += ", done with by the replayer"
	}
	return text
}

func stamped(what string, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return what + " " + at.UTC().Format(time.RFC3339Nano)
}

func belongs(code string) string {
	if code == "" {
		return "in the table"
	}
	return "with the dead letters as " + code
}

// String is the outcome in one word.
func (o Outcome) String() string {
	switch o {
	case Succeeded:
		return "ok"
	case Failed:
		return "failed"
	case Unknown:
		return "unknown"
	}
	return "not told"
}
