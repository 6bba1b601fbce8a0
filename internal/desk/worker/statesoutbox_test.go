package worker

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/history/state"
)

// undelivered is a desk whose channels do not answer, or take nothing.
func undelivered(t *testing.T) (k *keeping, b *alertLedger, in *alertInbox, check func(*StateAlerts, time.Time)) {
	k, b, in = &keeping{}, newAlertLedger(), &alertInbox{answers: make(chan func(bool), 9)}
	return k, b, in, func(a *StateAlerts, now time.Time) {
		t.Helper()
		if err := a.check(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
}

const firstDenial = "alert states:first-denial: First denial on a path"

// A message that nobody took is delivered again, later each time, until somebody takes it. Further news wait for it.
func TestStateAlerts_UntilTaken(t *testing.T) {
	t.Parallel()
	k, b, in, check := undelivered(t)
	now := time.Now()
	k.storedBefore = now
	a := NewStateAlerts(state.Watch{}, time.Second, k, b, in)
	k.denials = []state.Denial{{Path: "a", StoredAt: now}}
	check(a, now)
	k.denials = append(k.denials, state.Denial{Path: "b", StoredAt: now})
	for try := range 10 {
		in.expect(t, "a try", firstDenial)
		check(a, now) // no answer
		in.expect(t, "before the answer")
		in.answer(t, false)
		check(a, now)
		now = now.Add(min(time.Minute<<try, time.Hour) - 1)
		check(a, now)
		in.expect(t, "before the pause is over")
		now = now.Add(1)
		check(a, now)
	}
	in.take()
	in.answer(t, true)
	now = now.Add(time.Second)
	check(a, now)
	if got := in.take(); len(got) != 1 || got[0].Lines[0] != "path b, decision " {
		t.Errorf("after it was taken: %+v", got)
	}
	in.answer(t, true)
	check(a, now)
	check(a, now.Add(time.Hour))
	in.expect(t, "all is told")
}

// A desk that ends before a message is taken leaves it to the next one.
func TestStateAlerts_NextDeskDelivers(t *testing.T) {
	t.Parallel()
	k, b, in, check := undelivered(t)
	now := time.Now()
	k.denials = []state.Denial{{Path: "a", StoredAt: now}}
	check(NewStateAlerts(state.Watch{}, 0, k, b, in), now)
	in.expect(t, "the first desk", firstDenial)
	second := NewStateAlerts(state.Watch{}, 0, k, b, in)
	check(second, now.Add(30*24*time.Hour))
	in.expect(t, "the second desk", firstDenial)
	<-in.answers // the first desk hears nothing any more
	in.answer(t, true)
	check(second, now)
	check(NewStateAlerts(state.Watch{}, 0, k, b, in), now)
	in.expect(t, "a third desk")
}

// A desk that lost the duty delivers nothing that another desk has delivered.
func TestStates_DutyLostForgetsMessages(t *testing.T) {
	t.Parallel()
	k, b, in, check := undelivered(t)
	now := time.Now()
	k.rounds, k.denials = map[string]int{}, []state.Denial{{Path: "a", StoredAt: now}}
	a := NewStateAlerts(state.Watch{}, 0, k, b, in)
	s := NewStates(StatesConfig{Holder: "a", Metrics: NewStateMetrics(prometheus.NewRegistry())}, keeper{k, "a"}, b, a, zerolog.Nop())
	check(a, now)
	in.answer(t, false)
	check(a, now)
	b.duties[statesDuty] = alertDuty{holder: "b", until: now.Add(time.Hour)}
	if _, err := s.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := NewStateAlerts(state.Watch{}, 0, k, b, in)
	check(other, now)
	in.answer(t, true)
	check(other, now)
	in.take()
	check(a, now.Add(time.Hour))
	in.expect(t, "after the other desk")
}

// A desk cannot reach the database for longer than its lease. Another desk delivers the message that waited, and leaves
// one of its own. The first desk gets the duty back, and has never been told that it had lost it.
func TestStates_DutyBackReadsMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b, in, _ := undelivered(t)
		k.rounds, k.storedBefore = map[string]int{}, time.Now()
		desk := func(name string) *States {
			return NewStates(StatesConfig{Holder: name, Metrics: NewStateMetrics(prometheus.NewRegistry())}, keeper{k, name}, b, NewStateAlerts(state.Watch{}, 0, k, b, in), zerolog.Nop())
		}
		round := func(s *States) {
			t.Helper()
			if _, err := s.round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		one, other := desk("a"), desk("b")
		k.denials = []state.Denial{{Path: "first", StoredAt: time.Now()}}
		round(one)
		in.answer(t, false)
		round(one)
		b.set(func() { b.err = errAlertLedger })
		for range 4 {
			pass(30 * time.Second)
			if _, err := one.round(t.Context()); err == nil {
				t.Error("a round without the database")
			}
		}
		b.set(func() { b.err = nil })
		round(other)
		in.answer(t, true)
		k.denials = append(k.denials, state.Denial{Path: "second", StoredAt: time.Now()})
		round(other)
		in.answer(t, false)
		round(other)
		other.leave(t.Context())
		in.take()
		for range 10 {
			pass(10 * time.Minute)
			round(one)
			select {
			case done := <-in.answers:
				done(true)
			default:
			}
		}
		var told []string
		for _, m := range in.take() {
			told = append(told, m.Lines[0])
		}
		if got := strings.Join(told, "; "); got != "path second, decision " {
			t.Errorf("told %q", got)
		}
	})
}

// A round takes longer than the lease, and another desk takes the duty meanwhile. Alerts are that desk's then.
func TestStates_DutyLostWhileFollowing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b, in, _ := undelivered(t)
		k.rounds, k.storedBefore = map[string]int{}, time.Now()
		k.denials, k.took = []state.Denial{{Path: "a", StoredAt: time.Now()}}, 2*statesLease
		s := NewStates(StatesConfig{Holder: "a", Metrics: NewStateMetrics(prometheus.NewRegistry())}, keeper{k, "a"}, b, NewStateAlerts(state.Watch{}, 0, k, b, in), zerolog.Nop())
		go func() {
			time.Sleep(statesLease + time.Second)
			if mine, err := b.Duty(t.Context(), statesDuty, "b", 0, statesLease); !mine || err != nil {
				t.Errorf("the duty of the other desk: %v, %v", mine, err)
			}
		}()
		if pause, err := s.round(t.Context()); pause != statesAway || err != nil {
			t.Errorf("a pause of %v, %v", pause, err)
		}
		in.expect(t, "after the duty was lost")
	})
}
