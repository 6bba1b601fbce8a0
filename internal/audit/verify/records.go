package verify

import (
	"fmt"
	"strings"

	"docket/internal/record/home"
)

// noLoss is I1: for all p, all r in IN with offset < CO[p]: r is in T (same d and h) or PK or DLQ or PDLQ or SP (same c
// and h).
func noLoss(m *sortedEvidence) Result {
	if !m.whole {
		return undecided(sourceUnread)
	}
	t, forgotten, absent := m.tally(), false, 0
	for _, d := range m.truth.Decisions() {
		if !m.read(d) {
			continue
		}
		t.check()
		if none := m.home(d) == home.None; none && m.forgotten[d.Place] {
			forgotten = true
		} else if none && m.ev.Standby {
			absent++
		} else if none {
			t.broke(d, "committed and in no home, belongs "+belongs(m.deserves(d)))
		}
	}
	if forgotten {
		t.note("decisions of days that were forgotten on purpose are left out")
	}
	return t.behind(absent)
}

// oneRow is I2: count of T per d <= 1, and per c <= 1.
func oneRow(m *sortedEvidence) Result {
	if !m.whole && !m.ev.AllRows {
		return undecided("the table was not read")
	}
	t := m.tally()
	ids, places := make(map[Identity]*Row, len(m.ev.Rows)), make(map[Place]*Row, len(m.ev.Rows))
	twice := func(row, other *Row, of string) {
		if d := m.truth.At(row.Place); d != nil {
			t.broke(d, "two rows of one "+of)
			return
		}
		t.fault(row.Place, row.ID, "two rows of one "+of, fmt.Sprintf("the other names %v", other.Place))
	}
	for i := range m.ev.Rows {
		row := &m.ev.Rows[i]
		t.check()
		id := identity(row.ID, row.Time)
		if other := ids[id]; other != nil {
			twice(row, other, "identity")
		} else if other := places[row.Place]; other != nil {
			twice(row, other, "place")
		}
		ids[id], places[row.Place] = row, row
	}
	return t.result(false)
}

// fidelity is I3: value bytes in every home hash to h; null stays null; the raw column equals the input, as JSON. A
// row under another identity, another key and another dead-letter id also break it.
func fidelity(m *sortedEvidence) Result {
	if !m.whole {
		return undecided(sourceUnread)
	}
	t := m.tally()
	for _, d := range m.truth.Decisions() {
		f := m.evidence(d)
		for _, row := range f.rows {
			t.check()
			switch {
			case identity(row.ID, row.Time) != d.Identity():
				t.broke(d, "its row has another decision_id or ts")
			case !m.holds(row, d):
				t.broke(d, "its row has another payload")
			}
		}
		for _, one := range f.forwarded {
			t.check()
			if wrong := altered(one, d); wrong != "" {
				t.broke(d, wrong+" in "+one.Found)
			}
		}
	}
	return t.result(false)
}

// altered returns how a forwarded record differs from the produced one, or "".
func altered(f *Forwarded, d *Decision) string {
	var wrong []string
	if f.Value != d.Value {
		wrong = append(wrong, "another value")
	}
	if f.Key != d.Key {
		wrong = append(wrong, "another key")
	}
	if f.WrongID {
		wrong = append(wrong, "another dead-letter id")
	}
	return strings.Join(wrong, " and ")
}

// noInvention is I4: every home entry maps to an r in IN.
func noInvention(m *sortedEvidence) Result {
	t := m.tally()
	for i := range m.ev.Rows {
		row := &m.ev.Rows[i]
		if !m.truth.Covers(row.Place) {
			if end, known := m.ev.Ends[row.in()]; known && !m.part {
				t.check()
				if row.Offset >= end {
					t.fault(row.Place, row.ID, fmt.Sprintf("a row that was read where nothing is: the log ends at %d", end))
				}
			}
			continue
		}
		t.check()
		if m.truth.At(row.Place) == nil {
			t.fault(row.Place, row.ID, "a row that nobody produced")
		}
	}
	for i := range m.ev.Forwarded {
		f := &m.ev.Forwarded[i]
		switch {
		case f.Unplaced:
			t.check()
			if f.WrongID {
				t.fault(f.Place, "", "another dead-letter id than that of its value, in "+f.where(), f.told())
			}
		case f.Unproven:
			t.check()
			t.fault(f.Place, "", "a record that nothing proves to be ours, in "+f.where(), f.told())
		case f.NoOrigin:
			t.check()
			t.fault(f.Place, "", "a record that does not say where it was read, in "+f.where(), f.told())
		case m.truth.Covers(f.Place):
			t.check()
			if m.truth.At(f.Place) == nil {
				t.fault(f.Place, "", "a record that nobody produced, in "+f.where(), f.told())
			}
		}
	}
	if !m.whole {
		if t.v.Checked == 0 {
			return undecided(sourceUnread)
		}
		return t.result(false)
	}
	if !m.ev.AllRows {
		t.note("rows are looked up by identity, so one that nobody produced is not seen")
	}
	return t.result(false)
}

// where names the place where a forwarded record was found.
func (f *Forwarded) where() string {
	if f.Home == home.Spooled {
		return f.Found
	}
	return fmt.Sprintf("%s/%d/%d", f.Found, f.At.Partition, f.At.Offset)
}
