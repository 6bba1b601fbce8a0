package verify

import (
	"fmt"
	"slices"

	"docket/internal/desk/ledger"
	"docket/internal/record/home"
)

// Books is the evidence from the ledger of dead letters.
type Books struct {
	ledger.Proof
	// Read is the committed offset of the desk in the dead-letter topics, by topic and partition.
	Read map[string]map[int32]int64
	// Ranges are those that the desk read and left in Kafka. They were read before Missing, so letters that entered
	// since are known there.
	Ranges []ledger.Surplus
	// RangesCut says that there may be more ranges than Ranges has.
	RangesCut bool
	// Left counts records in one of these ranges, which the ledger does not have.
	Left int
	// Missing are the places in these topics below Read that the ledger does not know.
	Missing []Missing
	// Asked is the number of places that were checked.
	Asked int
	// Why is the reason for missing evidence. It is empty if there is evidence.
	Why string
}

// Missing is a record of a dead-letter topic that the desk has read and the ledger does not know.
type Missing struct {
	Topic string
	At    Position
	ID    string
}

// Trace returns how the ledger can know the record.
func (f *Forwarded) Trace() ledger.Trace {
	return ledger.Trace{ID: f.Entry, Mark: f.RetryOf, Topic: f.Topic, Partition: f.Partition, Offset: f.Offset}
}

// Entered reports whether the desk must have entered the record.
func (b *Books) Entered(f *Forwarded) bool {
	return (f.Home == home.DeadLetter || f.Home == home.Exhausted) && f.At.Offset < b.Read[f.Found][f.At.Partition]
}

// Looked notes whether the ledger knows a record that the desk has read. An unknown one must be in a range.
func (b *Books) Looked(f *Forwarded, known bool) {
	b.Asked++
	switch {
	case known:
	case slices.ContainsFunc(b.Ranges, func(r ledger.Surplus) bool {
		return r.Has(f.Found, f.At.Partition, f.At.Offset, f.Client, f.AnyClient)
	}):
		b.Left++
	default:
		b.Missing = append(b.Missing, Missing{Topic: f.Found, At: f.At, ID: f.Entry})
	}
}

// booksKept is I16: only legal transitions; each effect has one outbox row and one audit row; states sum to dead letters
// seen.
func booksKept(m *sortedEvidence) Result {
	b := m.ev.Books
	switch {
	case b == nil:
		return undecided("no ledger")
	case b.Why != "":
		return undecided(b.Why)
	}
	t := m.tally()
	lines, sendings := byLetter(b.Lines, func(a ledger.Audit) string { return a.LetterID }), byLetter(b.Sendings, func(s ledger.Sending) string { return s.LetterID })
	for i := range b.Letters {
		e := &b.Letters[i]
		t.check()
		t.chain(e.ID, e.State, lines[e.ID])
		t.effects(e, lines[e.ID], sendings[e.ID])
		delete(lines, e.ID)
	}
	if !b.Cut {
		for id, of := range lines {
			t.check()
			t.chain(id, "", of)
		}
	}
	absent, elsewhere := 0, 0
	for _, u := range b.Missing {
		switch {
		case m.ev.Standby:
			absent++
			continue
		case b.RangesCut:
			elsewhere++
			continue
		}
		t.fault(Place{}, "", fmt.Sprintf("%.12s in %s/%d/%d: the desk has read it and the ledger does not know it", u.ID, u.Topic, u.At.Partition, u.At.Offset))
	}
	t.v.Checked += b.Asked
	for _, s := range ledger.States() {
		if t.check(); b.Rows[s] != b.Counted[s] {
			t.fault(Place{}, "", fmt.Sprintf("%d letters are %s, the counters say %d", b.Rows[s], s, b.Counted[s]))
		}
	}
	if b.Left > 0 {
		t.note(fmt.Sprintf("%d dead letters are in a dead-letter topic or an archive and not in the ledger, as their clients brought too many: docket dlq surplus", b.Left))
	}
	if b.Cut {
		t.note("only the letters that moved last were looked at")
	}
	if elsewhere > 0 {
		t.note(fmt.Sprintf("%d dead letters are not in the ledger, nor in the newest %d ranges of those left in Kafka: older ranges were not looked at", elsewhere, len(b.Ranges)))
		return t.result(true)
	}
	return t.behind(absent)
}

func byLetter[T any](all []T, of func(T) string) map[string][]T {
	by := make(map[string][]T)
	for _, one := range all {
		by[of(one)] = append(by[of(one)], one)
	}
	return by
}

// chain follows a letter's audit from its entry to its present state; empty: it was removed.
func (t *tally) chain(id string, state ledger.State, lines []ledger.Audit) {
	if len(lines) == 0 {
		t.fault(Place{}, "", fmt.Sprintf("%.12s is %s and has no audit", id, state))
		return
	}
	at := ledger.State("")
	for i, l := range lines {
		switch {
		case (l.Act == ledger.Edited || l.Act == ledger.Died) && l.From == at && l.To == at && i > 0:
			continue // only the payload changed, or a retry died that was no longer awaited
		case l.Act == ledger.Archived && l.From == ledger.Resolved && l.To == l.From && at == l.From:
			continue // an archive has it
		case slices.Contains([]ledger.Act{ledger.Changed, ledger.Proposed, ledger.Approved, ledger.Rejected, ledger.Assigned, ledger.Snoozed}, l.Act) && l.From == at && l.To == at && i > 0:
			continue // a change outside the moves; its line names the author
		case l.From != at:
			t.fault(Place{}, "", fmt.Sprintf("%.12s: its audit goes on from %q where it was %q", id, l.From, at), told(lines)...)
			return
		case !ledger.Legal(l.From, l.To, l.Act):
			t.fault(Place{}, "", fmt.Sprintf("%.12s: %s from %q to %q is no legal move", id, l.Act, l.From, l.To), told(lines)...)
			return
		case l.By == "":
			t.fault(Place{}, "", fmt.Sprintf("%.12s: nobody is named for %s", id, l.Act), told(lines)...)
		}
		at = l.To
	}
	if at != state {
		t.fault(Place{}, "", fmt.Sprintf("%.12s is %q, its audit ends with %q", id, state, at), told(lines)...)
	}
}

func told(lines []ledger.Audit) []string {
	var all []string
	for _, l := range lines {
		all = append(all, fmt.Sprintf("%s, %s -> %s by %s", stamped(string(l.Act), l.At), l.From, l.To, l.By))
	}
	return all
}

// effects compares a letter with its retries. Each retry is in the audit. Each attempt is a line of the audit and a
// retry that ended dead. A PROCESSING letter has one open retry. A retry that died after it was given up, or after
// its letter was resolved, is not an attempt.
func (t *tally) effects(e *ledger.Entry, lines []ledger.Audit, sendings []ledger.Sending) {
	retried, died, dead, unsent, open := 0, 0, 0, 0, 0
	restored := false // retries that did not end dead left the outbox with it; the audit of another database is there
	for _, l := range lines {
		switch l.Act {
		case ledger.Restored:
			restored = true
		case ledger.Retried:
			retried++
		case ledger.Died:
			died++
		}
	}
	for _, s := range sendings {
		switch {
		case s.Outcome == ledger.SendingDead:
			dead++
		case s.Outcome == "" && s.Published.Stamp.IsZero():
			unsent++
			open++
		case s.Outcome == "":
			open++
		}
	}
	marks := make([]string, len(sendings))
	for i, s := range sendings {
		marks[i] = s.Mark
	}
	slices.Sort(marks)
	switch {
	case restored:
		if open > 0 {
			t.fault(Place{}, "", fmt.Sprintf("%.12s came back from an archive, and a retry of it is on its way", e.ID))
		}
	case retried != len(sendings):
		t.fault(Place{}, "", fmt.Sprintf("%.12s was retried %d times and has %d rows in the outbox", e.ID, retried, len(sendings)))
	case died != e.Attempts, dead < e.Attempts:
		t.fault(Place{}, "", fmt.Sprintf("%.12s has %d attempts, and %d of its retries ended dead", e.ID, e.Attempts, min(died, dead)))
	case unsent > 1:
		t.fault(Place{}, "", fmt.Sprintf("%.12s has %d retries that wait to be published", e.ID, unsent))
	case unsent > 0 && e.State != ledger.Processing:
		t.fault(Place{}, "", fmt.Sprintf("%.12s is %s, and a retry of it waits to be published", e.ID, e.State))
	case open == 0 && e.State == ledger.Processing:
		t.fault(Place{}, "", fmt.Sprintf("%.12s is PROCESSING, and no retry of it is on its way", e.ID))
	case len(slices.Compact(marks)) != len(sendings):
		t.fault(Place{}, "", fmt.Sprintf("%.12s has two retries with one mark", e.ID))
	}
}
