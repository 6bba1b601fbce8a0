package pipeline

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrWedged says that a batch shows no sign of progress.
var ErrWedged = errors.New("a batch in hand shows no sign of progress")

// progress shows other goroutines whether a batch makes progress.
type progress struct {
	clock   func() time.Time
	since   time.Time    // the batch was taken in hand then
	beat    atomic.Int64 // nanoseconds from since to the last sign of progress; setting the clock does not change it
	resting atomic.Bool  // in a pause, or waiting until the brokers take a commit
}

// pulse notes a sign of progress.
func (b *progress) pulse() { b.beat.Store(int64(b.clock().Sub(b.since))) }

// rest says, until wake is called, that the batch waits for something else.
func (b *progress) rest() (wake func()) {
	b.resting.Store(true)
	return func() { b.pulse(); b.resting.Store(false) }
}

// wedged reports whether the batch showed no sign of progress for longer than limit.
func (b *progress) wedged(now time.Time, limit time.Duration) bool {
	return !b.resting.Load() && now.Sub(b.since)-time.Duration(b.beat.Load()) > limit
}

// inHand has the batches in hand. The zero value has none. It is safe for concurrent use.
type inHand struct {
	mu      sync.Mutex
	batches map[*progress]struct{}
}

func (h *inHand) add(b *progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.batches == nil {
		h.batches = map[*progress]struct{}{}
	}
	h.batches[b] = struct{}{}
}

func (h *inHand) remove(b *progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.batches, b)
}

// idle reports whether every batch in hand waits for something else.
func (h *inHand) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for b := range h.batches {
		if !b.resting.Load() {
			return false
		}
	}
	return true
}

func (h *inHand) wedged(now func() time.Time, limit time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for b := range h.batches {
		if b.wedged(now(), limit) {
			return true
		}
	}
	return false
}
