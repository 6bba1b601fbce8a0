package ledgermodel

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// longestValue limits the inflated bytes of a value that are read.
const longestValue = 16 << 20

// Enter implements [ledger.Intake]. It returns no groups.
func (b *Book) Enter(ctx context.Context, letters []ledger.Letter, maxAttempts int, by ledger.Actor) (count ledger.EnteredCount, err error) {
	if by.Name == "" {
		return count, ledger.ErrNobody
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return count, err
	}
	defer end()
	count, _, _ = b.enter(letters, maxAttempts, by, now, nil, false) // both are sets of ids, for ranges only
	return count, nil
}

// enter enters letters, of a range that is read again or of none. It returns the ids of those beyond the limit, and
// of those that end retries.
func (b *Book) enter(letters []ledger.Letter, maxAttempts int, by ledger.Actor, now time.Time, of *ledger.Surplus, anyway bool) (count ledger.EnteredCount, left, ended map[string]bool) {
	batch := slices.Clone(letters)
	slices.SortStableFunc(batch, func(a, b ledger.Letter) int { return strings.Compare(a.ID, b.ID) })
	batch = slices.CompactFunc(batch, func(a, b ledger.Letter) bool { return a.ID == b.ID })
	hints := make([][]*sending, len(batch))
	for i := range batch {
		hints[i] = b.pointedAt(&batch[i]) // for all letters, before the first changes anything
	}
	var own []fresh
	ended = map[string]bool{}
	for i := range batch {
		l := &batch[i]
		s, parent := b.whose(l, hints[i])
		ended[l.ID] = s != nil
		switch {
		case s != nil && b.died(s, l, maxAttempts, by, now):
			count.DeadAgain++
		case s == nil && b.isNew(l):
			own = append(own, fresh{l, parent})
		}
	}
	admitted, left := b.admit(own, letters, of, anyway)
	for _, f := range admitted {
		b.add(f.Letter, f.parent, by, now)
		count.New++
	}
	for i := range letters {
		l := &letters[i]
		switch {
		case left[l.ID]:
			count.Left++
		case ended[l.ID] || !b.isNew(l):
			b.entered[ledger.Found{Topic: l.Found.Topic, Partition: l.Found.Partition, Offset: l.Found.Offset}] = true
		}
	}
	count.Known = len(letters) - count.New - count.DeadAgain - count.Left
	return count, left, ended
}

// pointedAt returns the sendings that the mark and the place of a letter name, the mark's first. A known letter ends
// none.
func (b *Book) pointedAt(l *ledger.Letter) (hints []*sending) {
	if b.letters[l.ID] != nil {
		return nil
	}
	all := b.all()
	add := func(is func(*sending) bool) {
		for _, s := range all {
			if is(s) && !slices.Contains(hints, s) && (b.letters[s.LetterID] != nil || s.Outcome == ledger.SendingDead) {
				hints = append(hints, s)
			}
		}
	}
	add(func(s *sending) bool { return l.RetryOf != "" && s.Mark == l.RetryOf })
	add(func(s *sending) bool { return s.isAt(l.Origin.Topic, l.Origin.Partition, l.Origin.Offset) })
	return hints
}

func sameValue(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// whose returns the sending that a letter ends, nil if it is a letter of its own; then it may have a parent.
func (b *Book) whose(l *ledger.Letter, hints []*sending) (s *sending, parent string) {
	for _, s := range hints {
		if sameValue(s.Value, l.Value) {
			return s, ""
		}
	}
	for _, s := range hints {
		if b.letters[s.LetterID] == nil {
			continue
		}
		read, refused := decision.Decode(s.Value, longestValue)
		if refused != nil || read.Sole {
			continue
		}
		if parts := ledger.PartsOf(l, read.Parts); len(parts) > 0 {
			s.children = append(s.children, parts...)
			slices.Sort(s.children)
			s.children = slices.Compact(s.children)
			return nil, s.LetterID
		}
	}
	return nil, ""
}

// died ends a sending dead, and reports whether that counts as an attempt of its letter.
func (b *Book) died(s *sending, l *ledger.Letter, most int, by ledger.Actor, now time.Time) (counts bool) {
	open := s.Outcome == ""
	if !open && s.Outcome != ledger.SendingWithdrawn && s.Outcome != ledger.SendingRefused {
		return false
	}
	s.end(ledger.SendingDead, now)
	s.Code = l.Cause.Code
	e := b.letters[s.LetterID]
	if !open || e.State == ledger.Resolved {
		return false
	}
	e.Attempts++
	own := b.of(e.ID)
	to := ledger.Pending
	switch {
	case e.State == ledger.Processing && own[len(own)-1] != s: // a later retry of it is running
		to = ledger.Processing
	case e.State == ledger.Failed, e.Attempts >= most:
		to = ledger.Failed
	}
	e.Cause, e.Found = l.Cause, l.Found
	if l.FailedAt.After(e.FailedAt) {
		e.FailedAt = l.FailedAt
	}
	by.Why = "dead again: " + l.Cause.Code
	b.move(e, to, ledger.Died, by, now)
	return true
}

// isNew reports whether a letter is not there and was not removed.
func (b *Book) isNew(l *ledger.Letter) bool {
	gone := slices.ContainsFunc(b.lines, func(a ledger.Audit) bool {
		return a.LetterID == l.ID && a.Act == ledger.Removed && (l.Origin.Partition != envelope.NoPlace || !a.At.Before(l.Found.Stamp))
	})
	return !gone && b.letters[l.ID] == nil
}

// add enters a letter of its own.
func (b *Book) add(l *ledger.Letter, parent string, by ledger.Actor, now time.Time) {
	own := *l
	own.RetryOf = ""
	e := &ledger.Entry{Letter: own, State: ledger.Pending, SeenAt: now, ChangedAt: now, ChangedBy: by.Name, Why: l.Cause.Code, Parent: parent}
	b.letters[l.ID] = e
	b.line(e, ledger.Entered, "", ledger.Pending, by, now)
}
