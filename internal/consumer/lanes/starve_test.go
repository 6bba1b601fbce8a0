package lanes

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fairness watches how long the first waiter of each lane waits. Its unit is the round: it ends when all turns that
// were held at its beginning have ended. No schedule can delay that, as every turn ends.
type fairness struct {
	*schedule
	next  int
	turns [laneCount][]int // that are held, by number
	heads [laneCount]*head
}

type head struct {
	waiter *asked
	before map[int]bool // turns of the present round that have not ended
	rounds int
}

// note brings turns and heads up to date after a step.
func (f *fairness) note() {
	for l := range laneCount {
		for len(f.turns[l]) < f.held[l] {
			f.turns[l] = append(f.turns[l], f.next)
			f.next++
		}
		var first *asked
		if len(f.queue[l]) > 0 {
			first = f.queue[l][0]
		}
		if h := f.heads[l]; h == nil || h.waiter != first {
			f.heads[l] = nil
			if first != nil {
				f.heads[l] = &head{waiter: first, before: f.all()}
			}
		}
	}
}

func (f *fairness) all() map[int]bool {
	all := map[int]bool{}
	for _, turns := range f.turns {
		for _, n := range turns {
			all[n] = true
		}
	}
	return all
}

// end ends a turn, and counts the rounds of all that wait through it.
func (f *fairness) end(t fataler, l Lane, which int) {
	ended := f.turns[l][which]
	f.turns[l] = slices.Delete(f.turns[l], which, which+1)
	few := f.held[Urgent] < 3 || l == Urgent && f.held[Urgent] == 3
	waiting := f.heads
	f.release(t, l)
	f.note()
	for l, h := range waiting {
		if h == nil || f.heads[l] != h {
			continue // it has its turn
		}
		if Lane(l) == Urgent && few {
			t.Fatalf("held %v: a turn ended, and the urgent lane, which had no more than two, still waits", f.held)
		}
		delete(h.before, ended)
		if len(h.before) == 0 {
			h.rounds, h.before = h.rounds+1, f.all()
		}
		if most := map[Lane]int{Urgent: 0, Default: 2, Bulk: 2}[Lane(l)]; h.rounds > most {
			t.Fatalf("the first of %s waited for %d rounds, want %d at most: held %v", Lane(l).Name(), h.rounds, most, f.held)
		}
	}
}

// TestTurns_NoScheduleStarves lets lanes ask, yield and end their turns in any order. The urgent lane has a turn as
// soon as one ends, or one of its own where it has three. A low lane waits three rounds at most, as another low one and the urgent one come between.
func TestTurns_NoScheduleStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := &fairness{schedule: newSchedule()}
		lane := rapid.SampledFrom([]Lane{Default, Urgent, Bulk})
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				for _, l := range rapid.SliceOfN(lane, 1, 4).Draw(t, "lanes") {
					f.ask(t, l)
					f.note()
				}
			},
			"end": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "turns") {
					l := lane.Draw(t, "lane")
					if n := len(f.turns[l]); n > 0 {
						f.end(t, l, rapid.IntRange(0, n-1).Draw(t, "which"))
					}
				}
			},
			"yield": func(t *rapid.T) {
				f.yielding = rapid.Bool().Draw(t, "yields")
				f.step(t, func() { f.schedule.turns.Yield(f.yielding) })
				f.note()
			},
		})
	})
}

// TestTurns_AloneIsFirstComeFirstServed compares the turns of a process without lanes with a queue.
func TestTurns_AloneIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		turns, held := New(Alone(4)), 0
		var queue []chan struct{}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(*rapid.T) {
				granted := make(chan struct{})
				queue = append(queue, granted)
				turns.mu.Lock()
				turns.waiting[Default] = append(turns.waiting[Default], granted)
				turns.grant()
				turns.mu.Unlock()
			},
			"end": func(t *rapid.T) {
				if held > 0 {
					held--
					turns.Release(Default)
				}
			},
			"": func(t *rapid.T) {
				for held < 4 && len(queue) > 0 {
					if !closed(queue[0]) {
						t.Fatalf("%d of 4 turns are held, and the first waits", held)
					}
					queue, held = queue[1:], held+1
				}
				if len(queue) > 0 && closed(queue[0]) {
					t.Fatalf("a turn beyond the four, or out of order")
				}
			},
		})
	})
}
