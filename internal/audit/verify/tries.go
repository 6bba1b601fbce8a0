package verify

import (
	"fmt"
	"time"
)

// retryLaw is I12: a failing batch has <= 3 attempts, gaps 1 s and 2 s (+ 20%), none after cancel.
func retryLaw(m *sortedEvidence) Result {
	h := m.history
	if len(h.Attempts) == 0 {
		return undecided(notWatched)
	}
	pauses := h.Pauses
	if pauses == nil {
		pauses = []time.Duration{time.Second, 2 * time.Second}
	}
	type batch struct{ process, name string }
	cancelled := make(map[batch]time.Time)
	for _, c := range h.Cancels {
		cancelled[batch{c.Process, c.Batch}] = c.At
	}
	t := m.tally()
	tries := make(map[batch][]Attempt)
	for _, a := range h.Attempts {
		b := batch{a.Process, a.Batch}
		t.check()
		what := fmt.Sprintf("try %d of batch %s by %s at %s", len(tries[b])+1, a.Batch, a.Process, clock(a.Begun))
		if at, ok := cancelled[b]; ok && a.Begun.After(at) {
			t.fault(Place{}, "", what+" comes after it was cancelled at "+clock(at))
		}
		if n := len(tries[b]); n > len(pauses) {
			t.fault(Place{}, "", fmt.Sprintf("%s is one more than %d", what, len(pauses)+1))
		} else if n > 0 {
			before := tries[b][n-1]
			gap, want := a.Begun.Sub(before.Ended), pauses[n-1]
			if gap < want-time.Millisecond || gap > want+want/5 {
				t.fault(Place{}, "", fmt.Sprintf("%s comes %v after the one before, not %v", what, gap, want))
			}
			if before.Outcome == Succeeded {
				t.fault(Place{}, "", what+" comes after one that succeeded")
			}
		}
		tries[b] = append(tries[b], a)
	}
	return t.result(false)
}

// budget is I13: poll-to-release < 80% of the rebalance timeout; no refused commit in runs without STOP or network
// faults.
func budget(m *sortedEvidence) Result {
	h := m.history
	if len(h.Carries)+len(h.Commits) == 0 {
		return undecided(notWatched)
	}
	t := m.tally()
	if limit := h.RebalanceTimeout * 4 / 5; limit > 0 {
		for _, c := range h.Carries {
			t.check()
			if took := c.Released.Sub(c.Polled); took >= limit {
				t.fault(Place{}, "", fmt.Sprintf("%s held partition %d for %v from %s on, the budget is %v", c.Process, c.Partition, took, clock(c.Polled), limit))
			}
		}
	} else {
		t.note("the rebalance timeout is not known")
	}
	for _, f := range h.Faults {
		if f.Kind == FaultStop || f.Kind == FaultNetwork || f.Kind == FaultBroker {
			t.note("commits may be refused in a run with " + f.Kind + " faults")
			return t.result(false)
		}
	}
	for _, c := range h.Commits {
		t.check()
		if c.Outcome == Failed {
			t.fault(Place{}, "", c.told()+" was refused")
		}
	}
	return t.result(false)
}

// grace is the time that liveness allows besides the backlog.
const grace = time.Minute

// liveness is I14: within 60 s + backlog/rate after the last heal I7 holds, same process unless the schedule killed it.
func liveness(m *sortedEvidence) Result {
	h := m.history
	if len(h.Heals) == 0 {
		return undecided(notWatched)
	}
	t := m.tally()
	last := h.Heals[len(h.Heals)-1]
	limit := grace
	if h.Rate > 0 {
		limit += time.Duration(float64(h.Backlog) / h.Rate * float64(time.Second))
	}
	t.check()
	switch {
	case h.Settled.IsZero():
		t.fault(Place{}, "", fmt.Sprintf("never settled after the last heal at %s", clock(last)))
	case h.Settled.Sub(last) > limit:
		t.fault(Place{}, "", fmt.Sprintf("settled %v after the last heal at %s, allowed are %v", h.Settled.Sub(last), clock(last), limit))
	}
	killed := make(map[string]bool)
	for _, k := range h.Kills {
		killed[k.Process] = true
	}
	for _, p := range h.Processes {
		t.check()
		if !p.Ended.IsZero() && !killed[p.Name] {
			t.fault(Place{}, "", fmt.Sprintf("%s ended by itself at %s with %d", p.Name, clock(p.Ended), p.Exit))
		}
	}
	return t.result(false)
}
