//go:build synctests

package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"docket/internal/desk/ledger"
)

// ruling is a rule or a snooze of an operator.
type ruling struct {
	At, For  time.Duration
	Act      ledger.Act
	Letter   int // whose group it is for, of the movable letters, by id
	Topic    bool
	One      bool // of a snooze: that letter alone
	After    time.Duration
	Rate     float64
	Most     int64
	Failures int
}

// rulings draws rules for some schedules with desks, and kills desks while they apply them. It has dice of its own, so that all other
// draws of a seed stay the same.
func (s *schedule) rulings() {
	d := dice{rand.New(rand.NewPCG(s.Seed, 0x4c1e5))}
	if s.Desks == 0 || d.IntN(3) > 0 {
		return
	}
	for range 1 + d.IntN(5) {
		r := ruling{At: d.between(time.Second, 14*time.Second), For: d.between(500*time.Millisecond, 15*time.Second), Act: one(d, ledger.Retried, ledger.Retried, ledger.Closed, ledger.Snoozed), Letter: d.IntN(100), Topic: d.IntN(3) == 0,
			One: d.IntN(2) == 0, After: one(d, 0, 0, time.Second), Rate: one[float64](d, 0, 0, 2), Most: one[int64](d, 1, 3, 100), Failures: 1 + d.IntN(3)}
		s.Rulings = append(s.Rulings, r)
		if d.IntN(2) == 0 {
			e := event{At: r.At + d.between(0, 3*time.Second), What: killAtRule.name, Slot: len(s.Starts) - 1 - d.IntN(s.Desks), N: d.IntN(4), Arg: one(d, "before", "after"), For: d.between(200*time.Millisecond, 5*time.Second)}
			s.Events = append(s.Events, e)
			s.Healed = max(s.Healed, e.At+e.For)
		}
	}
	slices.SortStableFunc(s.Events, func(a, b event) int { return cmp.Compare(a.At, b.At) })
}

// killAtRule kills a desk at one of the next turns of a rule. Only schedules with rules draw it.
var killAtRule = evil{"kill in a rule", nil, func(w *world, e event) func() {
	if p := w.slots[e.Slot].process(); p != nil {
		w.slots[e.Slot].strike(0, e.Arg == "before", e.For, (*process).kill)
		p.only(e.N, []string{"ledger ActRule"})
	}
	return nothing
}}

// snoozed is a snooze that held.
type snoozed struct {
	letter, fingerprint, topic string // letter empty: of the group
	from, until                time.Time
}

// rule adds a rule, or snoozes.
func (w *world) rule(r ruling) {
	proof := w.proof()
	var free []*ledger.Entry
	for i := range proof.Letters {
		if e := &proof.Letters[i]; e.State.Decidable() {
			free = append(free, e)
		}
	}
	if len(free) == 0 {
		return
	}
	e, by, until := free[r.Letter%len(free)], ledger.Actor{Name: "ruler", Why: "the seed says so"}, time.Now().Add(r.For)
	topic := ""
	if r.Topic {
		topic = e.Origin.Topic
	}
	if r.Act == ledger.Snoozed && r.One {
		outcomes, err := w.book.Snooze(context.Background(), []string{e.ID}, until, by)
		if err == nil && outcomes[0].Err == nil {
			for i := range w.snoozes { // it takes the place of the one before
				if s := &w.snoozes[i]; s.letter == e.ID && s.until.After(time.Now()) {
					s.until = time.Now()
				}
			}
			w.snoozes = append(w.snoozes, snoozed{letter: e.ID, from: time.Now(), until: until})
		}
		w.history.add("operator snoozes", "", fmt.Sprintf("%.12s: %v", e.ID, err))
		return
	}
	made, err := w.book.AddRule(context.Background(), ledger.Rule{Fingerprint: e.Fingerprint, Topic: topic, Act: r.Act, After: r.After, Rate: r.Rate, Most: r.Most, Failures: r.Failures, EndsAt: until}, by)
	w.history.add("operator rules", "", fmt.Sprintf("%s of %s %q: rule %d, %v", r.Act, e.Fingerprint, topic, made.ID, err))
	if err == nil && r.Act == ledger.Snoozed {
		for i := range w.snoozes { // it takes the place of the one before
			if s := &w.snoozes[i]; s.letter == "" && s.fingerprint == e.Fingerprint && s.topic == topic && s.until.After(time.Now()) {
				s.until = time.Now()
			}
		}
		w.snoozes = append(w.snoozes, snoozed{fingerprint: e.Fingerprint, topic: topic, from: time.Now(), until: until})
	}
}

// reopen moves what was closed back, so that rules could close it again.
func (w *world) reopen() {
	outcomes, err := w.book.Reopen(context.Background(), w.letters(ledger.Resolved), ledger.Actor{Name: "ruler", Why: "the seed says so"})
	n := 0
	for _, o := range outcomes {
		n += b2i(o.Err == nil)
	}
	w.history.add("operator reopens", "", fmt.Sprintf("%d letters: %v", n, err))
}

func (k desksBook) Rules(ctx context.Context, fingerprint string, all bool, n int) ([]ledger.Rule, error) {
	return asked(ctx, k.p, "Rules", func() ([]ledger.Rule, error) { return k.inner().Rules(ctx, fingerprint, all, n) })
}

func (k desksBook) ActRule(ctx context.Context, id int64, t ledger.Turn) (ledger.Acting, error) {
	return asked(ctx, k.p, "ActRule", func() (ledger.Acting, error) { return k.inner().ActRule(ctx, id, t) })
}

// judgeRules checks what rules did: at most one act for each failure of a letter, and none on a letter that was snoozed or is of
// others. No rule acted more often than it may. The audit has each act.
func (w *world) judgeRules(proof ledger.Proof) {
	all, err := w.book.Rules(context.Background(), "", true, 1000)
	if err != nil {
		panic(err) // it cannot fail
	}
	letters := map[string]*ledger.Entry{}
	for i := range proof.Letters {
		letters[proof.Letters[i].ID] = &proof.Letters[i]
	}
	for i := range all {
		r := &all[i]
		wrongly := func(format string, args ...any) {
			w.found(fmt.Sprintf("a rule acts once for each failure: rule %d, %s, %s: %s", r.ID, r.Act, r.State, fmt.Sprintf(format, args...)))
		}
		acts, n := map[string]int{}, int64(0)
		for _, l := range proof.Lines {
			if l.By != r.Actor().Name {
				continue
			}
			n++
			key := l.LetterID
			if r.Act == ledger.Retried {
				key = fmt.Sprint(key, " after failure ", l.Attempts)
			}
			if acts[key]++; acts[key] > 1 {
				wrongly("it acted twice on %s", key)
			}
			if l.Act != r.Act || l.At.Before(r.CreatedAt) || l.At.After(r.EndsAt) {
				wrongly("it did %s at %v", l.Act, l.At)
			}
			e := letters[l.LetterID]
			if e == nil || r.Topic != "" && e.Origin.Topic != r.Topic {
				wrongly("%.12s is none of its letters", l.LetterID)
				continue
			}
			for _, s := range w.snoozes {
				if (s.letter == e.ID || s.letter == "" && s.fingerprint == r.Fingerprint && (s.topic == "" || s.topic == e.Origin.Topic)) && l.At.After(s.from) && l.At.Before(s.until) {
					wrongly("%.12s was snoozed at %v", e.ID, l.At)
				}
			}
		}
		if n != r.Acted || n > r.Most && r.Act != ledger.Snoozed {
			wrongly("it says that it moved %d, at most %d; the audit has %d", r.Acted, r.Most, n)
		}
		stored, begun := false, 0
		for k := range proof.Sendings {
			if s := &proof.Sendings[k]; s.By == r.Actor().Name && s.Outcome != ledger.SendingWithdrawn {
				begun++
				stored = stored || s.Outcome == ledger.SendingStored
			}
		}
		if r.Act == ledger.Retried && !stored && begun > r.Failures {
			wrongly("it began %d retries, none was stored, and %d may fail", begun, r.Failures)
		}
	}
}
