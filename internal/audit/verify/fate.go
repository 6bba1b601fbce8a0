package verify

import "docket/internal/record/home"

// Fate is the result for one decision.
type Fate struct {
	*Decision
	Home   home.Home // of several the final one; None: it has none
	Code   string    // the code that it should be dead-lettered with, conflicts included; empty: a row
	DeadAs []string  // the codes of its dead letters, each once
	Ends   int       // number of homes among row, dead letter and parking dead letter
	Read   bool      // its record was committed
}

// Fates returns the result for each decision, in order of place.
func Fates(ev *Evidence, t *Truth) []Fate {
	m := match(ev, t, nil)
	all := make([]Fate, 0, t.Len())
	for _, d := range t.Decisions() {
		f := m.evidence(d)
		dead, exhausted := f.in(home.DeadLetter), f.in(home.Exhausted)
		fate := Fate{
			Decision: d, Home: m.home(d), Code: m.deserves(d), Read: m.read(d),
			Ends: b2i(len(f.rows) > 0) + b2i(len(dead) > 0) + b2i(len(exhausted) > 0),
		}
		seen := make(map[string]bool, 1)
		for _, one := range dead {
			if !seen[one.Code] {
				seen[one.Code] = true
				fate.DeadAs = append(fate.DeadAs, one.Code)
			}
		}
		all = append(all, fate)
	}
	return all
}
