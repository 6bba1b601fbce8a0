package verify

import "fmt"

// kept limits the findings of one invariant that are kept; the others are counted.
const kept = 1000

// tally builds a result.
type tally struct {
	m *sortedEvidence
	v Result
}

func (m *sortedEvidence) tally() *tally { return &tally{m: m} }

// undecided is the result if evidence is missing.
func undecided(why string) Result { return Result{State: Undecided, Note: why} }

// check counts one more checked thing.
func (t *tally) check() { t.v.Checked++ }

// broke notes a violation of a decision.
func (t *tally) broke(d *Decision, what string) {
	f := Finding{Place: d.Place, ID: d.named(), What: what}
	if t.v.Findings == 0 || t.v.State == Warned {
		f.History = t.m.trace(d)
	}
	t.add(Broken, f)
}

// warned notes a violation whose cause may be outside Docket.
func (t *tally) warned(d *Decision, what string) {
	f := Finding{Place: d.Place, ID: d.named(), What: what}
	if t.v.Findings == 0 {
		f.History = t.m.trace(d)
	}
	t.add(Warned, f)
}

// fault notes a violation without a decision in the truth.
func (t *tally) fault(at Place, id, what string, history ...string) {
	t.add(Broken, Finding{Place: at, ID: id, What: what, History: history})
}

// add keeps a finding. Violations come before warnings.
func (t *tally) add(s State, f Finding) {
	switch {
	case s == Broken && t.v.State == Warned:
		t.v.Found = append([]Finding{f}, t.v.Found...)
	case len(t.v.Found) < kept:
		t.v.Found = append(t.v.Found, f)
	}
	t.v.Findings++
	if t.v.State != Broken {
		t.v.State = s
	}
}

// note adds why something was left out.
func (t *tally) note(why string) { t.v.Note = joined(t.v.Note, why) }

// behind returns the result if so many things are undecided because a standby, which may be behind, lacks them.
func (t *tally) behind(absent int) Result {
	if absent > 0 {
		t.note(fmt.Sprintf("%d that the table or the ledger of a standby lacks, which may be behind", absent))
	}
	return t.result(absent > 0)
}

// result returns the result. open says that something was undecided.
func (t *tally) result(open bool) Result {
	if t.v.State == "" {
		t.v.State = Held
		if open {
			t.v.State = Undecided
		}
	}
	return t.v
}
