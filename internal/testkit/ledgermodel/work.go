package ledgermodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// Claim implements [ledger.Relay].
func (b *Book) Claim(ctx context.Context, holder string, n int, lease time.Duration) (claimed []ledger.Sending, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	held := map[string]int64{} // the first row of each key that is claimed or waits
	for _, s := range b.all() {
		if s.unsent() && s.Key != nil && (s.Tries > 0 || !s.claimedUntil.IsZero()) && (s.nextTry.After(now) || s.claimedUntil.After(now)) && held[string(s.Key)] == 0 {
			held[string(s.Key)] = s.ID
		}
	}
	for _, s := range b.all() {
		if len(claimed) == n || !s.unsent() || s.nextTry.After(now) || s.claimedUntil.After(now) || b.letters[s.LetterID].State != ledger.Processing {
			continue
		}
		if first := held[string(s.Key)]; s.Key != nil && first > 0 && (s.Tries == 0 && s.claimedUntil.IsZero() || s.ID > first) {
			continue
		}
		s.claimedBy, s.claimedUntil = holder, now.Add(lease)
		if edit := b.editOf(s.LetterID); edit != 0 {
			if s.edit == 0 {
				s.markAt = now
			}
			s.edit = edit
		}
		claimed = append(claimed, s.Sending)
	}
	return claimed, nil
}

// Published implements [ledger.Relay].
func (b *Book) Published(ctx context.Context, _ string, placed []ledger.Placed, extend time.Duration) error {
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for _, p := range placed {
		s := b.sendings[p.SendingID]
		if s == nil {
			continue
		}
		if s.Published.Stamp.IsZero() {
			s.Published = ledger.Found{Topic: s.Topic, Partition: p.Partition, Offset: p.Offset, Stamp: now}
			s.claimedBy, s.claimedUntil, s.lookAt = "", time.Time{}, now.Add(ledger.FirstLook)
			if s.Outcome == ledger.SendingWithdrawn || s.Outcome == ledger.SendingRefused { // it is in the topic after all
				s.Outcome, s.EndedAt, s.Code = "", time.Time{}, ""
			}
		}
		if e := b.letters[s.LetterID]; e != nil && e.State == ledger.Processing && e.LeaseUntil.Before(now.Add(extend)) {
			e.LeaseUntil = now.Add(extend)
		}
	}
	return nil
}

// Unpublished implements [ledger.Relay].
func (b *Book) Unpublished(ctx context.Context, holder string, id int64, code string, pause time.Duration, giveUp bool) error {
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s := b.sendings[id]
	if s == nil || s.claimedBy != holder || !s.unsent() {
		return fmt.Errorf("%w: retry %d", ledger.ErrLost, id)
	}
	s.Tries++
	s.Code, s.claimedBy, s.claimedUntil, s.looks, s.lookAt, s.nextTry = code, "", time.Time{}, 0, time.Time{}, now.Add(pause)
	if !giveUp {
		return nil
	}
	s.end(ledger.SendingRefused, now)
	s.lookAt = now
	if e := b.letters[s.LetterID]; e.State == ledger.Processing {
		b.move(e, ledger.Failed, ledger.Refused, ledger.Actor{Name: holder, Why: "it was not published: " + code}, now)
	}
	return nil
}

// Awaited implements [ledger.Watch].
func (b *Book) Awaited(ctx context.Context, n int) (awaited []ledger.Awaited, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	inOrder := func(a, b *sending) int { return cmp.Or(a.lookAt.Compare(b.lookAt), cmp.Compare(a.ID, b.ID)) }
	first := func(is func(*sending) bool) []*sending {
		due := slices.DeleteFunc(b.all(), func(s *sending) bool { return !is(s) || s.lookAt.IsZero() || s.lookAt.After(now) })
		slices.SortFunc(due, inOrder)
		return due[:min(n, len(due))]
	}
	due := first(func(s *sending) bool { return !s.Published.Stamp.IsZero() && s.EndedAt.IsZero() })
	due = append(due, first(func(s *sending) bool { return s.Outcome == ledger.SendingRefused })...)
	due = slices.DeleteFunc(due, func(s *sending) bool {
		e := b.letters[s.LetterID]
		return e == nil || s.Outcome == ledger.SendingRefused && e.State != ledger.Failed
	})
	slices.SortFunc(due, inOrder)
	for _, s := range due[:min(n, len(due))] {
		awaited = append(awaited, ledger.Awaited{Sending: s.Sending, State: b.letters[s.LetterID].State, Children: slices.Clone(s.children), Looks: s.looks})
	}
	return awaited, nil
}

// Stored implements [ledger.Watch].
func (b *Book) Stored(ctx context.Context, ids []int64, why []string, by ledger.Actor) error {
	switch {
	case by.Name == "":
		return ledger.ErrNobody
	case len(ids) != len(why):
		return errors.New("not one line for each retry that ended stored")
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for i, id := range ids {
		s := b.sendings[id]
		if s == nil || b.letters[s.LetterID] == nil {
			continue
		}
		if e := b.letters[s.LetterID]; e.State != ledger.Resolved {
			by.Why = why[i]
			b.move(e, ledger.Resolved, ledger.Stored, by, now)
		}
		own := b.of(s.LetterID)
		for _, o := range own {
			named := func(s *sending) bool { return slices.Contains(ids, s.ID) && sameValue(s.Value, o.Value) }
			switch {
			case !o.EndedAt.IsZero():
			case o.Published.Stamp.IsZero() && !slices.Contains(ids, o.ID):
				o.end(ledger.SendingWithdrawn, now)
			case slices.ContainsFunc(own, named): // another was published with other bytes
				o.end(ledger.SendingStored, now)
			}
		}
		b.forget(s.LetterID)
	}
	return nil
}

// Overtaken implements [ledger.Watch].
func (b *Book) Overtaken(ctx context.Context, possible []ledger.Possible, maxAttempts int, by ledger.Actor) (ended int, err error) {
	if by.Name == "" {
		return 0, ledger.ErrNobody
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	for _, p := range possible {
		s, l := b.sendings[p.SendingID], b.letters[p.LetterID]
		switch {
		case s == nil || l == nil || s.LetterID == l.ID || s.Published.Stamp.IsZero() || !s.EndedAt.IsZero():
		case p.Index == envelope.NoIndex:
			b.died(s, &l.Letter, maxAttempts, by, now)
			ended++
		default:
			s.children = append(s.children, p.Index)
			slices.Sort(s.children)
			s.children = slices.Compact(s.children)
		}
	}
	return ended, nil
}

// LookAgain implements [ledger.Watch].
func (b *Book) LookAgain(ctx context.Context, ids []int64, after time.Duration) error {
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	pauses := ledger.GivenUpPauses()
	for _, id := range ids {
		s := b.sendings[id]
		switch {
		case s == nil:
		case s.Outcome == ledger.SendingRefused:
			s.lookAt = now.Add(pauses[min(s.looks, len(pauses)-1)])
			s.looks++
		case s.EndedAt.IsZero():
			s.lookAt = now.Add(after)
			s.looks++
		}
	}
	return nil
}

// EndLeases implements [ledger.Upkeep].
func (b *Book) EndLeases(ctx context.Context, by ledger.Actor) (ended int, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	for _, id := range slices.Sorted(maps.Keys(b.letters)) {
		e := b.letters[id]
		if e.State != ledger.Processing || !e.LeaseUntil.Before(now) {
			continue
		}
		own := b.of(e.ID)
		if slices.ContainsFunc(own, func(s *sending) bool { return s.unsent() && s.claimedUntil.After(now) }) {
			continue // it is being published
		}
		for _, s := range own {
			if s.unsent() {
				s.end(ledger.SendingWithdrawn, now)
			}
		}
		by.Why = cmp.Or(by.Why, ledger.Unheard)
		b.move(e, ledger.Pending, ledger.LeaseEnded, by, now)
		ended++
	}
	return ended, nil
}

// Remove implements [ledger.Upkeep].
func (b *Book) Remove(ctx context.Context, resolvedBefore time.Time, n int, by ledger.Actor) (removed int, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	if least := now.Add(-b.keep); least.Before(resolvedBefore) {
		resolvedBefore = least
	}
	var gone []*ledger.Entry
	for _, e := range b.letters {
		if e.State == ledger.Resolved && e.ChangedAt.Before(resolvedBefore) && !b.onlyCopy(e) && !slices.ContainsFunc(b.of(e.ID), (*sending).unmarked) {
			gone = append(gone, e)
		}
	}
	slices.SortFunc(gone, func(a, b *ledger.Entry) int {
		return cmp.Or(a.ChangedAt.Compare(b.ChangedAt), strings.Compare(a.ID, b.ID))
	})
	for _, e := range gone[:min(n, len(gone))] {
		for _, s := range b.of(e.ID) {
			if s.Outcome != ledger.SendingDead {
				if j := b.jobs[s.Job]; j != nil {
					j.removed[s.Outcome]++
				}
				delete(b.sendings, s.ID)
			}
		}
		maps.DeleteFunc(b.proposals, func(_ int64, p *proposal) bool { return p.LetterID == e.ID })
		delete(b.letters, e.ID)
		b.line(e, ledger.Removed, ledger.Resolved, "", by, now)
		removed++
	}
	return removed, nil
}

// onlyCopy reports whether a RESOLVED letter may be the only copy of a decision: a person closed it, and no archive
// has it.
func (b *Book) onlyCopy(e *ledger.Entry) bool {
	if e.ArchivedIn != "" || len(e.Value) == 0 {
		return false
	}
	for _, l := range slices.Backward(b.lines) {
		if l.LetterID == e.ID && l.From != l.To {
			return l.Act != ledger.Stored
		}
	}
	return false
}

// Unarchived implements [ledger.Upkeep].
func (b *Book) Unarchived(ctx context.Context, resolvedBefore time.Time) (n int64, err error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	for _, e := range b.letters {
		if e.State == ledger.Resolved && e.ChangedAt.Before(resolvedBefore) && b.onlyCopy(e) {
			n++
		}
	}
	return n, nil
}

// Compact implements [ledger.Upkeep]: there are no counters to sum up.
func (b *Book) Compact(ctx context.Context) error { return ctx.Err() }

// deskDuty is the prefix of the duties by which desks show that they are running.
const deskDuty = "desk:"

// Duty implements [ledger.Upkeep].
func (b *Book) Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	d := b.duties[name]
	if d == nil {
		d = &duty{}
		b.duties[name] = d
	} else if d.holder != holder && d.until.After(now) || !d.done.IsZero() && d.done.After(now.Add(-every)) {
		return false, nil
	}
	d.holder, d.until = holder, now.Add(lease)
	if strings.HasPrefix(name, deskDuty) {
		d.done = now
	}
	return true, nil
}

// DutyDone implements [ledger.Upkeep].
func (b *Book) DutyDone(ctx context.Context, name, holder string) error {
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	d := b.duties[name]
	if d == nil || d.holder != holder {
		return ledger.ErrLost
	}
	d.done, d.until = now, now
	return nil
}

// Desks implements [ledger.Upkeep].
func (b *Book) Desks(ctx context.Context, within time.Duration) (desks []string, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for name, d := range b.duties {
		if holder, is := strings.CutPrefix(name, deskDuty); is && !d.done.Before(now.Add(-within)) {
			desks = append(desks, holder)
		}
	}
	slices.Sort(desks)
	return desks, nil
}

// Remembered implements [ledger.Upkeep].
func (b *Book) Remembered(ctx context.Context, name string) (text string, at time.Time, err error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	defer end()
	return b.notes[name].text, b.notes[name].at, nil
}

// Remember implements [ledger.Upkeep].
func (b *Book) Remember(ctx context.Context, name, text string) error {
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	b.notes[name] = note{text, now}
	return nil
}
