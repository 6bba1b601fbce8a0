package verify

import (
	"fmt"
	"maps"
	"slices"

	"docket/internal/record/home"
)

// settled is I7. CO = log end; SP empty. Every PK record is in T or PDLQ, or in DLQ if the table refuses it. T and
// (DLQ + PDLQ) share no c.
func settled(m *sortedEvidence) Result {
	if !m.ev.Settled {
		return undecided("the system is not settled")
	}
	t, absent := m.tally(), 0
	if !m.part {
		m.atTheEnd(t)
		m.spoolEmpty(t)
	}
	for _, d := range m.truth.Decisions() {
		f := m.evidence(d)
		if len(f.forwarded) == 0 {
			continue
		}
		t.check()
		row := m.twin(d)
		stored := row != nil && m.holds(row, d)
		switch lost := len(f.in(home.Parked)) > 0 && !stored && !f.endedWhole(d); {
		case lost && m.ev.Standby && row == nil:
			absent++
		case lost:
			t.broke(d, "parked, and neither stored nor dead-lettered")
		}
		if len(f.rows) > 0 && len(f.in(home.DeadLetter))+len(f.in(home.Exhausted)) > 0 {
			t.broke(d, "has a row and is a dead letter too")
		}
	}
	return t.behind(absent)
}

func (m *sortedEvidence) atTheEnd(t *tally) {
	if m.ev.Ends == nil {
		t.note("the log ends were not read")
	}
	for _, p := range slices.SortedFunc(maps.Keys(m.ev.Ends), Partition.Compare) {
		t.check()
		if done, end := m.ev.Committed[p], m.ev.Ends[p]; done != end && (end > 0 || done > 0) {
			t.fault(Place{}, "", fmt.Sprintf("%v is committed up to %d of %d", p, done, end))
		}
	}
}

func (m *sortedEvidence) spoolEmpty(t *tally) {
	if m.ev.Spool == nil {
		t.note("no spool was looked at")
	}
	for i := range m.ev.Forwarded {
		if f := &m.ev.Forwarded[i]; f.Home == home.Spooled {
			t.check()
			t.fault(f.Place, "", "still in the spool, in "+f.Found)
		}
	}
	for _, dir := range m.ev.Spool {
		for _, file := range dir.Files {
			if kind, _ := spoolName(file.Name); kind == nameData && file.Lines == 0 {
				t.check()
				t.fault(Place{}, "", fmt.Sprintf("%s/%s is still in the spool", dir.Dir, file.Name))
			}
		}
	}
}
