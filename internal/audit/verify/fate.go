package verify

import "docket/internal/record/home"

// Fate is what became of one decision.
type Fate struct {
	*Decision
	Home   home.Home // of several the one that records end in; None: it has none
	Code   string    // what it deserves to be dead-lettered with, conflicts included; empty: a row
	DeadAs []string  // the codes that it was dead-lettered with, each once
	Ends   int       // of row, dead letter and parking dead letter, how many it has
	Read   bool      // its record was committed
}

// Fates lists what became of each decision, in order of place.
func Fates(ev *Evidence, t *Truth) []Fate {
	m := match(ev, t, nil)
	all := make([]Fate, 0, t.Len())
	for _, d := range t.Decisions() {
		f := m.what(d)
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
