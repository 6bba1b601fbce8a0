package verify

import "fmt"

// confluence is I9: final T and final DLQ + PDLQ, as sets of (c, h), equal those of a fault-free run on the same
// input. Of decisions with one identity and different payloads the first is stored, which may be another one in each
// run. So only the number of their dead letters is compared. For duplicates one of the copies must have the row.
func confluence(m *sortedEvidence) Result {
	switch {
	case m.history.Reference == nil:
		return undecided("there is no run without faults to compare with")
	case !m.whole:
		return undecided(sourceUnread)
	case !m.ev.Settled:
		return undecided("the system is not settled")
	}
	t := m.tally()
	ref := match(m.history.Reference, m.truth, nil)
	contested := m.contested()
	dead := make(map[Identity]int)
	for _, d := range m.truth.Decisions() {
		t.check()
		id := d.Identity()
		here, there := m.evidence(d), ref.evidence(d)
		if d.ID != "" && contested[id] {
			dead[id] += b2i(here.endedWhole(d)) - b2i(there.endedWhole(d))
		} else if here.endedWhole(d) != there.endedWhole(d) {
			t.broke(d, "a dead letter "+either(here.endedWhole(d)))
		}
		if mine, theirs := m.twin(d) != nil, ref.twin(d) != nil; mine != theirs {
			t.broke(d, "stored "+either(mine))
		}
	}
	for _, d := range m.truth.Decisions() {
		if n := dead[d.Identity()]; d.ID != "" && n != 0 {
			t.broke(d, fmt.Sprintf("%+d dead letters of its identity against the run without faults", n))
			dead[d.Identity()] = 0
		}
	}
	return t.result(false)
}

func either(here bool) string {
	if here {
		return "here and not in the run without faults"
	}
	return "in the run without faults and not here"
}

// contested returns the identities that several good decisions with different payloads have, judged by their bytes.
func (m *sortedEvidence) contested() map[Identity]bool {
	first, contested := make(map[Identity]*Decision), make(map[Identity]bool)
	for _, d := range m.truth.Decisions() {
		if d.ID == "" || d.Code != "" {
			continue
		}
		id := d.Identity()
		switch other := first[id]; {
		case other == nil:
			first[id] = d
		case other.Body == nil || d.Body == nil || !SameJSON(other.Body, d.Body):
			contested[id] = true
		}
	}
	return contested
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
