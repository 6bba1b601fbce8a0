package verify

import (
	"fmt"
	"slices"
	"time"

	"docket/internal/record/home"
)

// order is I10: per key, order by partition, offset of T equals input order; first-pass PK order per source partition
// increases. Records that waited in the spool or were sent again bare are left out of the latter, because they may
// come later.
func order(m *sortedEvidence) Result {
	if !m.whole {
		return undecided(sourceUnread)
	}
	t := m.tally()
	m.rowsInOrder(t)
	m.parkedInOrder(t)
	return t.result(false)
}

// rowsInOrder compares the order of rows with the order of their decisions, for each key in a partition.
func (m *sortedEvidence) rowsInOrder(t *tally) {
	type stream struct {
		Partition
		key Sum
	}
	type claim struct {
		row *Row
		d   *Decision // the first decision with the row's identity on that key
	}
	firsts := make(map[Identity]*Decision, m.truth.Len())
	streams := make(map[stream][]claim)
	for _, d := range m.truth.Decisions() {
		id := d.Identity()
		if d.ID == "" || firsts[id] != nil || len(m.rows[id]) == 0 {
			continue
		}
		firsts[id] = d
		row := m.twin(d)
		if at := m.truth.At(row.Place); at != nil && at.Identity() == id {
			d = at // of duplicates the one with the row
		}
		in := stream{d.in(), d.Key}
		if row.in() != in.Partition || !m.truth.Covers(row.Place) {
			continue // it was stored from another partition or lane, or before what was read: its offset means nothing here
		}
		streams[in] = append(streams[in], claim{row, d})
	}
	for _, claims := range streams {
		slices.SortFunc(claims, func(a, b claim) int { return a.d.Place.Compare(b.d.Place) })
		for i, c := range claims {
			t.check()
			if i > 0 && claims[i-1].row.Place.Compare(c.row.Place) > 0 {
				t.broke(c.d, fmt.Sprintf("its row names %v, before that of an earlier decision with its key", c.row.Place))
			}
		}
	}
}

// parkedInOrder checks the first copy of each record that was parked for the first time.
func (m *sortedEvidence) parkedInOrder(t *tally) {
	for _, f := range m.history.Faults {
		if f.Kind == FaultStop {
			t.note("a process was stopped and went on, so the order in parking means nothing")
			return
		}
	}
	// Another process that parks an earlier record has read it again. The first process gave some records of its
	// batch homes and committed none.
	type stream struct {
		at, by string
		parted int32
		source Partition
	}
	first := m.firstHomes()
	last := make(map[stream]map[Place]int) // where its last copy is
	for i := range m.ev.Forwarded {
		if f := &m.ev.Forwarded[i]; f.Home == home.Parked && f.Attempt == 0 {
			at := stream{f.Found, f.By, f.At.Partition, f.in()}
			if last[at] == nil {
				last[at] = make(map[Place]int)
			}
			last[at][f.Place] = i
		}
	}
	seen := make(map[stream]map[Place]bool)
	highest := make(map[stream]Place)
	for i := range m.ev.Forwarded {
		f := &m.ev.Forwarded[i]
		d := m.truth.At(f.Place)
		if f.Home != home.Parked || f.Attempt != 0 || d == nil || f.FailedAt.IsZero() || f.Stamp.Sub(f.FailedAt).Abs() > time.Millisecond {
			continue
		}
		if f.FailedAt.After(first[d.Place]) {
			continue // it was read again: there may be earlier copies of its batch
		}
		if row := m.twin(d); row != nil && row.Place != d.Place && row.StoredAt.Before(f.FailedAt) {
			continue // the first time it may have been a duplicate, which leaves no trace
		}
		at := stream{f.Found, f.By, f.At.Partition, d.in()}
		if seen[at] == nil {
			seen[at] = make(map[Place]bool)
		}
		if seen[at][d.Place] {
			continue
		}
		seen[at][d.Place] = true
		t.check()
		// If the later record is parked once more behind this one, the process has read both again. It had not come to this one before.
		if before, ok := highest[at]; ok && before.Compare(d.Place) > 0 && last[at][before] < i {
			t.broke(d, fmt.Sprintf("parked for the first time behind %v", before))
			continue
		}
		highest[at] = d.Place
	}
}

// firstHomes returns the times at which records were first seen in a home.
func (m *sortedEvidence) firstHomes() map[Place]time.Time {
	first := make(map[Place]time.Time)
	note := func(p Place, at time.Time) {
		if before, ok := first[p]; !at.IsZero() && (!ok || at.Before(before)) {
			first[p] = at
		}
	}
	for i := range m.ev.Rows {
		note(m.ev.Rows[i].Place, m.ev.Rows[i].StoredAt)
	}
	for i := range m.ev.Forwarded {
		f := &m.ev.Forwarded[i]
		at := f.FailedAt
		if at.IsZero() { // sent again bare
			at = f.Stamp
		}
		note(f.Place, at)
	}
	return first
}
