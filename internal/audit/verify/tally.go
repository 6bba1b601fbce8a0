package verify

// kept is how many findings of one invariant are kept whole; the others are counted.
const kept = 1000

// tally is a verdict in the making.
type tally struct {
	m *matter
	v Verdict
}

func (m *matter) tally() *tally { return &tally{m: m} }

// undecided is the verdict where the evidence does not say.
func undecided(why string) Verdict { return Verdict{State: Undecided, Note: why} }

// check counts one more thing that was looked at.
func (t *tally) check() { t.v.Checked++ }

// broke notes that a decision is not as it has to be.
func (t *tally) broke(d *Decision, what string) {
	f := Finding{Place: d.Place, ID: d.named(), What: what}
	if t.v.Findings == 0 || t.v.State == Warned {
		f.History = t.m.trace(d)
	}
	t.add(Broken, f)
}

// warned notes what is not as it has to be for a reason that may lie outside.
func (t *tally) warned(d *Decision, what string) {
	f := Finding{Place: d.Place, ID: d.named(), What: what}
	if t.v.Findings == 0 {
		f.History = t.m.trace(d)
	}
	t.add(Warned, f)
}

// fault notes what is of no decision that the truth has.
func (t *tally) fault(at Place, id, what string, history ...string) {
	t.add(Broken, Finding{Place: at, ID: id, What: what, History: history})
}

// add keeps a finding; what is broken comes before what is a warning.
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

// verdict closes the tally. open says that something was left undecided.
func (t *tally) verdict(open bool) Verdict {
	if t.v.State == "" {
		t.v.State = Held
		if open {
			t.v.State = Undecided
		}
	}
	return t.v
}
