package ledgermodel

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"docket/internal/desk/ledger"
)

// rules are those of a [Book], and what they did.
type rules struct {
	*Cases
	acts map[int64]map[string][]int // attempts of letters at each act, by rule and letter
	of   map[int64]int64            // rules by sending
}

// newRules makes the rules of a ledger. The caller of their methods must not hold its lock.
func newRules(b *Book) rules {
	c := &Cases{
		Begin: func() (func(), error) {
			b.mu.Lock()
			return b.mu.Unlock, nil
		},
		Letter: func(id string) *ledger.Entry { return b.letters[id] },
		Group: func(fingerprint string) bool {
			for _, e := range b.letters {
				if e.Fingerprint == fingerprint {
					return true
				}
			}
			return false
		},
	}
	return rules{c, map[int64]map[string][]int{}, map[int64]int64{}}
}

// AddRule adds a rule. See [ledger.Cases].
func (b *Book) AddRule(ctx context.Context, r ledger.Rule, by ledger.Actor) (ledger.Rule, error) {
	return b.rules.AddRule(ctx, r, by)
}

// RemoveRule ends a rule. See [ledger.Cases].
func (b *Book) RemoveRule(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	return b.rules.RemoveRule(ctx, id, by)
}

// Snooze hides letters until a time. See [ledger.Cases].
func (b *Book) Snooze(ctx context.Context, ids []string, until time.Time, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.rules.Snooze(ctx, ids, until, by)
}

// Rules lists rules. See [ledger.Cases].
func (b *Book) Rules(ctx context.Context, fingerprint string, all bool, n int) ([]ledger.Rule, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.rules.Rules(ctx, fingerprint, all, n)
}

// group lists the rules of a group.
func (r rules) group(fingerprint string) (own []ledger.Rule) {
	for _, one := range r.rules {
		if one.Fingerprint == fingerprint {
			own = append(own, one)
		}
	}
	return own
}

func subjectOf(e *ledger.Entry) ledger.Subject {
	return ledger.Subject{State: e.State, Topic: e.Origin.Topic, Attempts: e.Attempts, ChangedAt: e.ChangedAt, SnoozedUntil: e.SnoozedUntil}
}

// Governed reports whether a letter is snoozed, or a rule decides about it.
func (b *Book) Governed(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.governed(b.letters[id], time.Now())
}

func (b *Book) governed(e *ledger.Entry, now time.Time) bool {
	if e == nil {
		return false
	}
	_, snoozed, found := ledger.Governing(b.rules.group(e.Fingerprint), subjectOf(e), now)
	return snoozed || found
}

// ActRule does one turn of a rule. See [ledger.Cases].
func (b *Book) ActRule(ctx context.Context, id int64, t ledger.Turn) (a ledger.Acting, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return a, err
	}
	defer end()
	a.Next = t.After
	if id < 1 || int(id) > len(b.rules.rules) {
		return a, ledger.ErrNotFound
	}
	r := &b.rules.rules[id-1]
	if !r.Holds(now) || r.Act == ledger.Snoozed {
		return a, nil
	}
	room, stop := b.roomOf(r)
	if stop != "" {
		r.State, r.Ended, a.Stopped = ledger.RuleStopped, ledger.Decided{By: r.Actor().Name, Why: stop, At: now}, stop
		return a, nil
	}
	n := min(r.Allows(now, t.Move), room)
	if n <= 0 {
		return a, nil
	}
	window := b.behind(r, t.After)
	over := len(window) < t.Look
	window = window[:min(t.Look, len(window))]
	var due []*ledger.Entry
	for _, e := range window {
		by, snoozed, found := ledger.Governing(b.rules.group(r.Fingerprint), subjectOf(e), now)
		if len(due) < n && found && !snoozed && by.ID == id && r.Due(subjectOf(e), b.rules.acts[id][e.ID], now) {
			due = append(due, e)
		}
	}
	switch {
	case len(due) == n:
		over = false
	case over:
		a.Next = ledger.Mark{}
	default:
		last := window[len(window)-1]
		a.Next = ledger.Mark{FirstFailed: last.FirstFailedAt, LetterID: last.ID}
	}
	a.Moved, a.More = len(due), n == t.Move && !over
	b.act(r, due, t.Lease, now)
	return a, nil
}

// behind are the letters that a rule looks at, behind a place, in order.
func (b *Book) behind(r *ledger.Rule, after ledger.Mark) (all []*ledger.Entry) {
	order := func(e *ledger.Entry, m ledger.Mark) int {
		return cmp.Or(e.FirstFailedAt.Compare(m.FirstFailed), strings.Compare(e.ID, m.LetterID))
	}
	for _, e := range b.letters {
		if e.Fingerprint == r.Fingerprint && (e.State == ledger.Pending || r.Act == ledger.Closed && e.State == ledger.Failed) && (after == ledger.Mark{} || order(e, after) > 0) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y *ledger.Entry) int {
		return order(x, ledger.Mark{FirstFailed: y.FirstFailedAt, LetterID: y.ID})
	})
	return all
}

func (b *Book) roomOf(r *ledger.Rule) (room int, stop string) {
	if r.Acted >= r.Most {
		return 0, "it moved as many letters as it may"
	}
	if r.Act != ledger.Retried {
		return int(r.Most), ""
	}
	var own []*sending
	open := 0
	for _, s := range b.all() {
		switch {
		case b.rules.of[s.ID] != r.ID || s.Outcome == ledger.SendingWithdrawn:
		case s.EndedAt.IsZero():
			open++
		default:
			own = append(own, s)
		}
	}
	slices.SortStableFunc(own, func(a, b *sending) int { return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(b.ID, a.ID)) })
	var ends []ledger.SendingOutcome
	for _, s := range own[:min(r.Failures, len(own))] {
		ends = append(ends, s.Outcome)
	}
	return r.Judge(ends, open)
}

func (b *Book) act(r *ledger.Rule, due []*ledger.Entry, lease time.Duration, now time.Time) {
	if len(due) == 0 {
		return
	}
	if b.rules.acts[r.ID] == nil {
		b.rules.acts[r.ID] = map[string][]int{}
	}
	for _, e := range due {
		b.rules.acts[r.ID][e.ID] = append(b.rules.acts[r.ID][e.ID], e.Attempts)
	}
	if r.Act == ledger.Retried {
		for _, id := range b.retry(due, lease, r.Actor(), now) {
			b.rules.of[id] = r.ID
		}
	} else {
		b.resolve(due, r.Actor(), now)
	}
	if r.Rate > 0 && !r.ActedAt.IsZero() {
		saved := max(ledger.LongestSaved, time.Duration(float64(time.Second)/r.Rate))
		from := r.ActedAt
		if least := now.Add(-saved); from.Before(least) {
			from = least
		}
		if r.ActedAt = from.Add(time.Duration(float64(len(due)) / r.Rate * float64(time.Second))); r.ActedAt.After(now) {
			r.ActedAt = now
		}
	} else {
		r.ActedAt = now
	}
	r.Acted += int64(len(due))
}

// Reopen moves letters that a person or a rule closed back to PENDING. See [ledger.Cases].
func (b *Book) Reopen(ctx context.Context, ids []string, by ledger.Actor) (all []ledger.Outcome, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, id := range ids {
		o, e, last := ledger.Outcome{ID: id, Err: ledger.ErrNotFound}, b.letters[id], ledger.Act("")
		for _, l := range b.lines {
			if l.LetterID == id {
				last = l.Act
			}
		}
		stored := slices.ContainsFunc(b.of(id), func(s *sending) bool { return s.Outcome == ledger.SendingStored })
		switch {
		case e == nil:
		case e.State != ledger.Resolved || last != ledger.Closed || stored:
			o.Err = refused(e)
		default:
			o.Err = nil
			b.move(e, ledger.Pending, ledger.Reopened, by, now)
		}
		all = append(all, o)
	}
	return all, nil
}
