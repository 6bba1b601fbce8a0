package lanes

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// asked is a waiter of the model.
type asked struct {
	lane    Lane
	granted chan struct{}
	passed  int // turns that ended while it waited at the head of its lane
}

// schedule drives Turns through steps and checks after each that its promises hold. It counts for itself.
type schedule struct {
	turns    *Turns
	queue    [laneCount][]*asked
	held     [laneCount]int
	yielding bool
	lastLow  Lane
}

func newSchedule() *schedule { return &schedule{turns: New(WithLanes())} }

func (s *schedule) low() int { return s.held[Default] + s.held[Bulk] }

func (s *schedule) total() int { return s.low() + s.held[Urgent] }

func (s *schedule) lowBound() int {
	if s.yielding {
		return 1
	}
	return 3
}

// ask is Acquire up to the point where it waits.
func (s *schedule) ask(t fataler, l Lane) {
	a := &asked{lane: l, granted: make(chan struct{})}
	s.queue[l] = append(s.queue[l], a)
	s.step(t, func() {
		s.turns.mu.Lock()
		defer s.turns.mu.Unlock()
		s.turns.waiting[l] = append(s.turns.waiting[l], a.granted)
		s.turns.grant()
	})
}

func (s *schedule) release(t fataler, l Lane) {
	for _, q := range s.queue {
		if len(q) > 0 {
			q[0].passed++
		}
	}
	s.held[l]--
	s.step(t, func() { s.turns.Release(l) })
}

// step does something and takes note of the turns that it granted, in the one order that the rules allow.
func (s *schedule) step(t fataler, do func()) {
	t.Helper()
	do()
	for {
		var granted []Lane
		for l, q := range s.queue {
			if len(q) > 0 && closed(q[0].granted) {
				granted = append(granted, Lane(l))
			}
		}
		if len(granted) == 0 {
			break
		}
		l := s.first(t)
		if !slices.Contains(granted, l) {
			t.Fatalf("%v got a turn, want %s first: held %v", granted, l.Name(), s.held)
		}
		s.queue[l] = s.queue[l][1:]
		s.held[l]++
		if l != Urgent {
			s.lastLow = l
		}
	}
	for l, q := range s.queue {
		switch {
		case len(q) > 1 && closed(q[1].granted):
			t.Fatalf("the second waiter of %s was served before the first", Lane(l).Name())
		case len(q) == 0 || s.total() == 4 || Lane(l).Low() && s.low() >= s.lowBound():
		default:
			t.Fatalf("%s waits although a turn is free: held %v, yielding %t", Lane(l).Name(), s.held, s.yielding)
		}
	}
	if s.total() > 4 || s.low() > 3 {
		t.Fatalf("held %v: more than four in all, or than three low", s.held)
	}
}

// first is the lane that has to get the next turn, by the sentences of the contract.
func (s *schedule) first(t fataler) Lane {
	t.Helper()
	lowMay := s.low() < s.lowBound()
	lowWaits := len(s.queue[Default])+len(s.queue[Bulk]) > 0
	switch {
	case s.total() >= 4:
		t.Fatalf("a fifth turn: held %v", s.held)
	case len(s.queue[Urgent]) > 0 && (s.held[Urgent] < 3 || !lowWaits || !lowMay):
		return Urgent
	case !lowMay:
		t.Fatalf("a turn of the low lanes beyond their bound: held %v, yielding %t", s.held, s.yielding)
	case len(s.queue[Bulk]) == 0:
		return Default
	case len(s.queue[Default]) == 0:
		return Bulk
	case s.lastLow == Default && s.held[Bulk] < 1:
		return Bulk
	}
	return Default
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestTurns_AnySchedule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSchedule()
		lane := rapid.SampledFrom([]Lane{Default, Urgent, Bulk})
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) { s.ask(t, lane.Draw(t, "lane")) },
			"release": func(t *rapid.T) {
				if l := lane.Draw(t, "lane"); s.held[l] > 0 {
					s.release(t, l)
				}
			},
			"leave": func(t *rapid.T) {
				l := lane.Draw(t, "lane")
				if len(s.queue[l]) == 0 {
					return // nobody waits, so nobody can leave
				}
				a := s.queue[l][rapid.IntRange(0, len(s.queue[l])-1).Draw(t, "waiter")]
				s.queue[l] = slices.DeleteFunc(s.queue[l], func(b *asked) bool { return a == b })
				s.step(t, func() {
					if s.turns.leave(a.lane, a.granted) {
						t.Fatal("a waiter that was granted nothing has a turn")
					}
				})
			},
			"yield": func(t *rapid.T) {
				s.yielding = !s.yielding
				s.step(t, func() { s.turns.Yield(s.yielding) })
			},
		})
	})
}

// Every lane has waiters at all times, and the turns end in the worst order.
func TestTurns_NoLaneStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSchedule()
		s.yielding = rapid.Bool().Draw(t, "yielding")
		s.turns.Yield(s.yielding)
		favoured := rapid.SampledFrom([]Lane{Default, Urgent, Bulk}).Draw(t, "ends first")
		for range 100 {
			for l := range Lane(laneCount) {
				for len(s.queue[l]) < 2 {
					s.ask(t, l)
				}
			}
			if s.held[Urgent] > 3 || s.low() == 0 {
				t.Fatalf("held %v: the low lanes have no turn while they wait", s.held)
			}
			l := favoured
			if s.held[l] == 0 || rapid.IntRange(0, 3).Draw(t, "another") == 0 {
				l = rapid.SampledFrom([]Lane{Default, Urgent, Bulk}).Draw(t, "lane")
			}
			if s.held[l] == 0 {
				continue
			}
			s.release(t, l)
			urgent := s.queue[Urgent]
			if len(urgent) > 0 && urgent[0].passed > 0 && s.held[Urgent] < 3 {
				t.Fatalf("held %v: a turn ended, and the urgent lane still waits", s.held)
			}
		}
	})
}

func TestTurns_LowLanesAlternate(t *testing.T) {
	t.Parallel()
	s := newSchedule()
	s.yielding = true
	s.turns.Yield(true)
	for range 10 {
		s.ask(t, Default)
		s.ask(t, Bulk)
	}
	var order []Lane
	for range 6 {
		order = append(order, s.lastLow)
		s.release(t, s.lastLow)
	}
	if !slices.Equal(order, []Lane{Default, Bulk, Default, Bulk, Default, Bulk}) {
		t.Fatalf("turns of the low lanes: %v", order)
	}
}

func TestTurns_ReserveForUrgent(t *testing.T) {
	t.Parallel()
	s := newSchedule()
	for range 10 {
		s.ask(t, Default)
		s.ask(t, Bulk)
	}
	if s.low() != 3 {
		t.Fatalf("%d turns of the low lanes, want 3", s.low())
	}
	s.ask(t, Urgent)
	if s.held[Urgent] != 1 {
		t.Fatal("the urgent lane waits behind a backlog of the low lanes")
	}
}

func TestTurns_Acquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := New(Limits{Total: 1, Low: 1, Urgent: 1, Bulk: 1, Yielding: 1})
		if !turns.Acquire(t.Context(), t.Context(), Default) {
			t.Fatal("no turn where all are free")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if turns.Acquire(ctx, t.Context(), Urgent) || turns.Acquire(t.Context(), ctx, Bulk) {
			t.Fatal("two turns of one")
		}
		got := make(chan bool)
		go func() { got <- turns.Acquire(t.Context(), t.Context(), Urgent) }()
		synctest.Wait()
		turns.Release(Default)
		if !<-got {
			t.Fatal("the turn that was released went to nobody")
		}
	})
}
