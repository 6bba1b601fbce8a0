package verify

import (
	"fmt"
	"time"

	"docket/internal/errclass"
	"docket/internal/record/home"
)

// sortedEvidence is the evidence sorted by decision.
type sortedEvidence struct {
	ev        *Evidence
	truth     *Truth
	history   *History
	whole     bool // a truth was given
	part      bool // it is only a part of the source
	found     map[*Decision]*found
	rows      map[Identity][]*Row
	unequal   map[Place]bool
	forgotten map[Place]bool
	equal     map[comparison]bool // compared payloads; several invariants compare the same pair
}

// comparison is a row and a decision whose payloads are compared.
type comparison struct {
	row      *Row
	decision *Decision
}

// found is the evidence about one decision.
type found struct {
	rows      []*Row // rows with its place
	forwarded []*Forwarded
}

func match(ev *Evidence, t *Truth, h *History) *sortedEvidence {
	m := &sortedEvidence{ev: ev, truth: t, history: h, whole: t != nil}
	if t == nil {
		m.truth = NewTruth()
		m.truth.Spans = map[Partition]Span{} // it knows nothing about any place
	}
	ev = Parted(ev, m.truth)
	m.ev = ev
	if h == nil {
		m.history = &History{}
	}
	m.found = make(map[*Decision]*found, m.truth.Len())
	m.rows = make(map[Identity][]*Row, len(ev.Rows))
	m.unequal = make(map[Place]bool, len(ev.Unequal))
	m.forgotten = make(map[Place]bool, len(ev.Forgotten))
	for _, p := range ev.Forgotten {
		m.forgotten[p] = true
	}
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

// of returns the evidence about a decision, to add to.
func (m *sortedEvidence) of(d *Decision) *found {
	f := m.found[d]
	if f == nil {
		f = &found{}
		m.found[d] = f
	}
	return f
}

// evidence returns the evidence about a decision, to read.
func (m *sortedEvidence) evidence(d *Decision) found {
	if f := m.found[d]; f != nil {
		return *f
	}
	return found{}
}

// twin returns the row with the decision's identity; nil if there is none.
func (m *sortedEvidence) twin(d *Decision) *Row {
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

// holds reports whether a row has the decision's payload: by the row's own bytes, by the server's answer, or, for a
// row of another decision, by that one's payload.
func (m *sortedEvidence) holds(row *Row, d *Decision) bool {
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

// deserves returns the code that a decision should be dead-lettered with; empty: a row, or a duplicate of one.
func (m *sortedEvidence) deserves(d *Decision) string {
	if d.Code != "" {
		return d.Code
	}
	if row := m.twin(d); row != nil && row.Place != d.Place && !m.holds(row, d) {
		return errclass.CodeIDConflict
	}
	return ""
}

// home returns the decision's home: of several the final one. A forwarded record with another value does not count,
// nor does a row with another payload.
func (m *sortedEvidence) home(d *Decision) home.Home {
	if row := m.twin(d); row != nil && m.holds(row, d) {
		if row.Place == d.Place {
			return home.Row
		}
		return home.Duplicate
	}
	best := home.None
	for _, f := range m.evidence(d).forwarded {
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

// ended reports whether it is in a final topic.
func (f *Forwarded) ended() bool { return f.Home == home.DeadLetter || f.Home == home.Exhausted }

// in lists the evidence about a decision in a home.
func (f found) in(h home.Home) []*Forwarded {
	var list []*Forwarded
	for _, one := range f.forwarded {
		if one.Home == h {
			list = append(list, one)
		}
	}
	return list
}

// read reports whether the record of a decision was committed.
func (m *sortedEvidence) read(d *Decision) bool {
	return d.Offset < m.ev.Committed[d.in()]
}

func (m *sortedEvidence) homes() map[home.Home]int {
	all := make(map[home.Home]int)
	for _, d := range m.truth.list {
		all[m.home(d)]++
	}
	return all
}

// trace lists all evidence about a decision.
func (m *sortedEvidence) trace(d *Decision) []string {
	lines := []string{fmt.Sprintf("produced at %v, belongs %s", d.Place, belongs(m.deserves(d)))}
	if next, ok := m.ev.Committed[d.in()]; ok {
		lines = append(lines, fmt.Sprintf("%v is committed up to %d", d.in(), next))
	} else {
		lines = append(lines, fmt.Sprintf("nothing is committed in %v", d.in()))
	}
	if row := m.twin(d); row != nil {
		lines = append(lines, fmt.Sprintf("its identity has a row, first read at %v%s", row.Place, stamped(", stored", row.StoredAt)))
	} else {
		lines = append(lines, "no row has its identity")
	}
	f := m.evidence(d)
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

// told describes a forwarded record in one line.
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
