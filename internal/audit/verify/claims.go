package verify

import (
	"fmt"
	"slices"
	"time"

	"docket/internal/record/home"
)

// Claim is an answer that said until when it was complete.
type Claim struct {
	By string // the reader
	// At is the time when its rows had been read, by the clock that stamps the rows.
	At    time.Time
	Until time.Time // complete until, by the clock of [Decision.Reached]
	// Parked, DeadLettered and Spooled are the counts of the answer; nil: it said that they are unknown.
	Parked, DeadLettered, Spooled *int64
	// Ends are the ends of topics when the answer counted their records; nil: not known.
	Ends map[string]map[int32]int64
}

// counted reports whether a record was in its topic before its topic was counted, as far as that is known.
func (c Claim) counted(f *Forwarded) bool {
	end, known := c.Ends[f.Found][f.At.Partition]
	return !known || f.At.Offset < end
}

// completeUntil is I19: an answer that says "complete until T" has all that had reached Kafka before T. A row that is
// stored later breaks it, unless the answer counted its decision, or said that the count of its kind is unknown. A row
// counts by the record that it was read from.
func completeUntil(m *sortedEvidence) Result {
	h := m.history
	if len(h.Claims) == 0 {
		return undecided(notAsked)
	}
	t := m.tally()
	forwarded := map[Place][]*Forwarded{}
	for i := range m.ev.Forwarded {
		f := &m.ev.Forwarded[i]
		if d := m.truth.At(f.Place); d != nil {
			forwarded[d.Place] = append(forwarded[d.Place], f)
		}
	}
	for _, f := range h.Moved {
		if d := m.truth.At(f.Place); d != nil {
			forwarded[d.Place] = append(forwarded[d.Place], &f)
		}
	}
	for _, all := range forwarded {
		slices.SortStableFunc(all, func(a, b *Forwarded) int { return a.FailedAt.Compare(b.FailedAt) })
	}
	late := lateRows(m)
	for _, c := range h.Claims {
		t.check()
		counted := map[home.Home]int64{}
		for _, l := range late {
			if !l.stored.After(c.At) {
				break // the latest comes first
			}
			if !l.d.Reached.Before(c.Until) {
				continue
			}
			if slices.ContainsFunc(l.waited(c, forwarded[l.d.Place]), func(kind home.Home) bool {
				limit, known := c.count(kind)
				if known && counted[kind] >= limit {
					return false
				}
				counted[kind]++
				return true
			}) {
				continue
			}
			t.broke(l.d, fmt.Sprintf("stored at %s, after %s had said at %s to be complete until %s; it reached Kafka at %s",
				clock(l.stored), c.By, clock(c.At), clock(c.Until), clock(l.d.Reached)))
		}
	}
	return t.result(false)
}

// lateRow is a decision with its row.
type lateRow struct {
	d      *Decision
	stored time.Time
}

// lateRows returns the rows of which both times are known, the latest first.
func lateRows(m *sortedEvidence) (all []lateRow) {
	for i := range m.ev.Rows {
		r := &m.ev.Rows[i]
		stored := r.StoredAt
		if stored.IsZero() {
			stored = m.history.Stored[r.Place]
		}
		if d := m.truth.At(r.Place); d != nil && !d.Reached.IsZero() && !stored.IsZero() {
			all = append(all, lateRow{d, stored})
		}
	}
	slices.SortStableFunc(all, func(a, b lateRow) int { return b.stored.Compare(a.stored) })
	return all
}

// waited returns the home besides a row that the decision had at a claim. One that went from the parking topic to a spool
// may have had either: the offset of its parked record may not have been committed. So may one that was put back and
// parked: its dead letter is open until it has its row.
func (l *lateRow) waited(c Claim, forwarded []*Forwarded) (kinds []home.Home) {
	for _, f := range forwarded {
		if f.FailedAt.After(c.At) {
			continue
		}
		fromSpool := !f.FailedAt.IsZero() && f.Stamp.Sub(f.FailedAt) > time.Millisecond // a spool can send long after the stamp
		if f.Home == home.Spooled || f.Stamp.After(c.At) || fromSpool && !c.counted(f) {
			return append([]home.Home{home.Spooled}, kinds...)
		}
		dead := f.Home != home.Parked || slices.Contains(kinds, home.DeadLetter)
		if kinds = nil; f.Home == home.Parked {
			kinds = []home.Home{home.Parked}
		}
		if dead {
			kinds = append(kinds, home.DeadLetter)
		}
	}
	return kinds
}

// count returns the limit of a kind; false: the claim says that it is unknown.
func (c Claim) count(kind home.Home) (n int64, known bool) {
	of := c.DeadLettered
	switch kind {
	case home.Parked:
		of = c.Parked
	case home.Spooled:
		of = c.Spooled
	}
	if of == nil {
		return 0, false
	}
	return *of, true
}
