package verify

import (
	"fmt"

	"docket/internal/errclass"
	"docket/internal/record/home"
)

// deadLettersDeserveIt is I5. For all r in DLQ or PDLQ: the parse oracle rejects it, or inserting r alone fails with
// a D code. Or d is in T with another h (declared conflict), or it is too_slow/panic and repeats alone.
func deadLettersDeserveIt(m *sortedEvidence) Result {
	if !m.whole {
		return undecided(sourceUnread)
	}
	t, untried, lacking := m.tally(), 0, 0
	for i := range m.ev.Forwarded {
		f := &m.ev.Forwarded[i]
		d := m.truth.At(f.Place)
		if !f.ended() || f.NoOrigin || d == nil {
			continue
		}
		t.check()
		switch grounds, why := m.grounds(f, d); grounds {
		case groundless:
			t.broke(d, why)
		case repaired:
			t.warned(d, why)
		case unknown:
			untried++
		case beyond:
			lacking++
		case deserved:
		}
	}
	if untried > 0 {
		t.note(fmt.Sprintf("%d that the table refused were not tried", untried))
	}
	if lacking > 0 {
		return t.behind(lacking)
	}
	return t.result(untried > 0)
}

// grounds says whether a dead letter is right.
type grounds int

const (
	deserved   grounds = iota
	groundless         // it should not be one
	repaired           // it would not be one today
	unknown
	beyond // a standby, which may be behind, lacks the row that it conflicts with
)

func (m *sortedEvidence) grounds(f *Forwarded, d *Decision) (grounds, string) {
	switch {
	case d.Code != "" && (d.Code == f.Code || f.Whole && m.ev.Live):
		return deserved, ""
	case d.Code != "":
		return groundless, fmt.Sprintf("in %s as %s, belongs there as %s", f.Found, f.Code, d.Code)
	case f.Code == errclass.CodeIDConflict:
		return m.conflict(f, d)
	case (f.Code == errclass.CodeOutOfRange || f.Code == errclass.CodeTooLarge || f.Whole) && m.ev.Live: // it has a twin now, is below a higher limit, or is a line
		return repaired, fmt.Sprintf("in %s as %s, and the decoder takes it now: docket dlq retry stores it", f.Found, f.Code)
	case isDecoders(f.Code):
		return groundless, fmt.Sprintf("in %s as %s, and the decoder takes it", f.Found, f.Code)
	case m.truth.KnowsTable:
		return groundless, fmt.Sprintf("in %s as %s, belongs in the table", f.Found, f.Code)
	}
	return m.tried(f)
}

// conflict looks for the row that conflicts with the decision.
func (m *sortedEvidence) conflict(f *Forwarded, d *Decision) (grounds, string) {
	switch row := m.twin(d); {
	case row == nil && m.ev.Standby:
		return beyond, ""
	case row == nil && m.ev.Live:
		return repaired, "in " + f.Found + " as id_conflict, and no row has its identity today"
	case row == nil:
		return groundless, "in " + f.Found + " as id_conflict, and no row has its identity"
	case m.holds(row, d):
		return groundless, "in " + f.Found + " as id_conflict, and the row with its identity has its payload"
	}
	return deserved, ""
}

// tried uses the table's answer to a new try.
func (m *sortedEvidence) tried(f *Forwarded) (grounds, string) {
	switch trial, ok := m.ev.Tried[f.ID]; {
	case ok && trial.Stored && m.ev.Live:
		return repaired, fmt.Sprintf("in %s as %s, and would be stored today", f.Found, f.Code)
	case ok && trial.Stored:
		return groundless, fmt.Sprintf("in %s as %s, and would be stored today", f.Found, f.Code)
	case ok && (f.Home == home.Exhausted || trial.Class == errclass.Data.String() || trial.Code == errclass.CodeTooSlow):
		return deserved, ""
	}
	return unknown, ""
}

// isDecoders reports whether a code is one of the decoder's reasons.
func isDecoders(code string) bool {
	switch code {
	case errclass.CodeEmpty, errclass.CodeSyntax, errclass.CodeDuplicateKey, errclass.CodeMissingField,
		errclass.CodeWrongType, errclass.CodeOutOfRange, errclass.CodeTooLarge:
		return true
	}
	return false
}

// deadLettersComplete is I6: settled: every bad r is in DLQ or PDLQ and not in T.
func deadLettersComplete(m *sortedEvidence) Result {
	switch {
	case !m.whole:
		return undecided(sourceUnread)
	case !m.ev.Settled:
		return undecided("the system is not settled")
	}
	t := m.tally()
	for _, d := range m.truth.Decisions() {
		code := m.deserves(d)
		if code == "" || !m.read(d) {
			continue
		}
		t.check()
		f := m.evidence(d)
		if !f.endedWhole(d) {
			t.broke(d, "belongs with the dead letters as "+code+" and is not there")
		}
		if len(f.rows) > 0 {
			t.broke(d, "stored, and belongs with the dead letters as "+code)
		}
	}
	if !m.truth.KnowsTable {
		t.note("what the table refuses is not known beforehand")
	}
	return t.result(false)
}

// endedWhole reports whether the decision is, unaltered, in a final topic.
func (f found) endedWhole(d *Decision) bool {
	for _, one := range f.forwarded {
		if one.ended() && one.Value == d.Value {
			return true
		}
	}
	return false
}
