package lanes

import (
	"context"
	"slices"
	"sync"
)

// Limits are the bounds of a [Turns]. All are at least 1.
type Limits struct {
	// Total is how many batches all lanes together write at a time.
	Total int
	// Low is how many of them are of the low lanes, so that the rest is a reserve for the urgent lane.
	Low int
	// Urgent is how many of them are of the urgent lane while a low lane waits.
	Urgent int
	// Bulk is how many of them are of the bulk lane while the default lane waits.
	Bulk int
	// Yielding is how many are of the low lanes while these yield, see [Turns.Yield].
	Yielding int
}

// WithLanes are the limits of a process with an urgent lane, a bulk lane or both. Four writers use two cores of a
// database fully. See contract section 12 for the other figures.
func WithLanes() Limits { return Limits{Total: 4, Low: 3, Urgent: 3, Bulk: 1, Yielding: 1} }

// Alone are the limits of a process with one lane: n batches at a time, in the order of asking.
func Alone(n int) Limits { return Limits{Total: n, Low: n, Urgent: n, Bulk: n, Yielding: n} }

// Turns grants turns: the right to have one batch decoded and written. It is safe for concurrent use.
//
// The urgent lane is served first. Within a lane the order is that of asking. When default and bulk both wait, they
// alternate.
type Turns struct {
	limits Limits

	mu       sync.Mutex
	held     [laneCount]int
	waiting  [laneCount][]chan struct{} // each closed when its turn is granted
	yielding bool
	lastLow  Lane // the low lane that was granted a turn last
}

// New returns turns with these limits.
func New(l Limits) *Turns { return &Turns{limits: l} }

// Total returns how many turns there are.
func (t *Turns) Total() int { return t.limits.Total }

// Count returns how many turns a lane has, and how many of its batches wait for one.
func (t *Turns) Count(l Lane) (held, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[l], len(t.waiting[l])
}

// Acquire waits for a turn of a lane and reports whether it has one. It returns false when ctx or leaving ends first.
// Each turn needs one [Turns.Release].
func (t *Turns) Acquire(ctx, leaving context.Context, l Lane) bool {
	granted := make(chan struct{})
	t.mu.Lock()
	t.waiting[l] = append(t.waiting[l], granted)
	t.grant()
	t.mu.Unlock()
	select {
	case <-granted:
		return true
	case <-ctx.Done():
	case <-leaving.Done():
	}
	return t.leave(l, granted)
}

// leave gives up waiting. A turn that was granted at the same moment is kept.
func (t *Turns) leave(l Lane, granted chan struct{}) (mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting[l], granted)
	if at < 0 {
		return true
	}
	t.waiting[l] = slices.Delete(t.waiting[l], at, at+1)
	return false
}

// Release returns a turn of a lane.
func (t *Turns) Release(l Lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[l]--
	t.grant()
}

// Yield makes the low lanes yield, or ends that. Turns that they hold are not taken away.
func (t *Turns) Yield(yields bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.yielding = yields
	t.grant()
}

// grant gives turns to whoever may have one. The caller holds mu.
func (t *Turns) grant() {
	for {
		l, ok := t.next()
		if !ok {
			return
		}
		t.held[l]++
		if l.Low() {
			t.lastLow = l
		}
		close(t.waiting[l][0])
		t.waiting[l] = slices.Delete(t.waiting[l], 0, 1)
	}
}

// next returns the lane whose first waiter gets the next turn; ok is false when nobody may have one.
func (t *Turns) next() (l Lane, ok bool) {
	order := [laneCount]Lane{Urgent, Default, Bulk}
	if t.lastLow == Default {
		order = [laneCount]Lane{Urgent, Bulk, Default}
	}
	for _, l := range order {
		if len(t.waiting[l]) > 0 && t.free(l) {
			return l, true
		}
	}
	return 0, false
}

// free reports whether a lane may have one more turn.
func (t *Turns) free(l Lane) bool {
	if t.total() >= t.limits.Total {
		return false
	}
	switch {
	case l == Urgent:
		return t.held[Urgent] < t.limits.Urgent || !t.lowWaits()
	case t.held[Default]+t.held[Bulk] >= t.low():
		return false
	case l == Bulk:
		return t.held[Bulk] < t.limits.Bulk || len(t.waiting[Default]) == 0
	}
	return true
}

func (t *Turns) total() int { return t.held[Default] + t.held[Urgent] + t.held[Bulk] }

func (t *Turns) low() int {
	if t.yielding {
		return t.limits.Yielding
	}
	return t.limits.Low
}

// lowWaits reports whether a low lane waits. One that waits at its own bound needs no turn of the urgent lane: then all
// turns are taken.
func (t *Turns) lowWaits() bool { return len(t.waiting[Default])+len(t.waiting[Bulk]) > 0 }
