package verify

// Decide asks every invariant. t may be nil where the source was not read, h where nobody watched.
func Decide(ev *Evidence, t *Truth, h *History) *Report {
	m := match(ev, t, h)
	r := &Report{Seed: m.history.Seed, Build: m.history.Build, Decisions: m.truth.Len(), Homes: m.homes()}
	for _, inv := range invariants {
		v := inv.decide(m)
		v.Invariant, v.Name = inv.id, inv.name
		r.Verdicts = append(r.Verdicts, v)
	}
	return r
}

// invariant is one statement and the function that decides it.
type invariant struct {
	id, name string
	each     bool // it is decided record by record, so windows of the source can be decided one after another
	decide   func(*matter) Verdict
}
