package verify

// Decide checks every invariant. t is nil if the source was not read, h if no run was watched.
func Decide(ev *Evidence, t *Truth, h *History) *Summary {
	return decide(match(ev, t, h), func(invariant) bool { return true })
}

// DecidePart checks the invariants about single records, for one part of the source. The evidence must have every
// record that was forwarded from that part, and every row with an identity of it. Method [Summary.Merge] combines the
// parts, with the result of [Decide] for the whole without a truth.
func DecidePart(ev *Evidence, t *Truth) *Summary {
	m := match(ev, t, nil)
	m.part = true
	return decide(m, func(inv invariant) bool { return inv.each })
}

func decide(m *sortedEvidence, asked func(invariant) bool) *Summary {
	r := &Summary{Seed: m.history.Seed, Build: m.history.Build, Decisions: m.truth.Len(), Homes: m.homes()}
	for _, inv := range invariants {
		if !asked(inv) {
			continue
		}
		v := inv.decide(m)
		v.Invariant, v.Name = inv.id, inv.name
		r.Results = append(r.Results, v)
	}
	return r
}

// invariant is one statement and the function that checks it.
type invariant struct {
	id, name string
	each     bool // it is checked record by record
	decide   func(*sortedEvidence) Result
}

// invariants is the table of all statements, in order.
var invariants = []invariant{
	{"I1", "no loss", true, noLoss},
	{"I2", "one row", true, oneRow},
	{"I3", "fidelity", true, fidelity},
	{"I4", "no invention", true, noInvention},
	{"I5", "dead letters deserve it", true, deadLettersDeserveIt},
	{"I6", "all that deserve it are dead letters", true, deadLettersComplete},
	{"I7", "settled", true, settled},
	{"I8", "commits are sane", false, commitsSane},
	{"I9", "confluence", false, confluence},
	{"I10", "order", true, order},
	{"I11", "a hold holds", false, holdHolds},
	{"I12", "the retry law", false, retryLaw},
	{"I13", "budget", false, budget},
	{"I14", "liveness", false, liveness},
	{"I15", "visible", false, visible},
	{"I16", "ledger", false, booksKept},
	{"I17", "clean", false, clean},
	{"I18", "secrets", false, secrets},
	{"I19", "complete until", false, completeUntil},
}

const (
	sourceUnread = "the source was not read"
	notWatched   = "nobody watched the run"
	notAsked     = "no answer said until when it is complete"
)
