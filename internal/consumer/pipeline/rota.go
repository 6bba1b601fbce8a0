package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"
)

// probed is the answer to the probe of a hold.
type probed struct {
	hold Hold // the reason to hold on
	over bool // the table takes a good row, and the hold ends
}

// rota lets the partitions that hold for the same hour probe one after another, a probe interval apart. Each answer is
// for all of them. So a table that refuses every row is probed once in an interval, by one connection, for any number
// of partitions. All of them have their place: finer than the hour, the table may take the rows of one and not of
// another. An answer gives no home, and no blame: each partition then writes its own records again. The zero value is
// ready. It is safe for concurrent use.
type rota struct {
	mu    sync.Mutex
	of    map[time.Time]*hour
	holds int64 // that have begun to wait
}

// hour has the partitions that hold for an hour.
type hour struct {
	queue []*holder // the first one probes next
	next  time.Time // the next probe is due then
}

// holder is a partition that waits.
type holder struct {
	hold  Hold          // the reason that it knows
	n     int64         // of all that waited
	first chan struct{} // it became the first one
	told  chan probed   // another one's answer that was new to it
}

// wait returns false when the caller has to probe, or when ctx or leaving ends. It returns true with the answer of
// another partition that ends the hold or changes its reason. at is the time of the caller's batch.
func (r *rota) wait(ctx, leaving context.Context, at time.Time, h Hold, interval time.Duration) (probed, bool) {
	at = at.UTC().Truncate(time.Hour)
	me := &holder{hold: h, first: make(chan struct{}, 1), told: make(chan probed, 1)}
	r.mu.Lock()
	mine := r.of[at]
	if mine == nil {
		if r.of == nil {
			r.of = make(map[time.Time]*hour)
		}
		mine = &hour{next: time.Now().Add(interval)}
		r.of[at] = mine
	}
	r.holds++
	me.n = r.holds
	mine.queue = append(mine.queue, me)
	r.mu.Unlock()
	defer r.leave(at, me)

	for {
		r.mu.Lock()
		first, left := len(mine.queue) > 0 && mine.queue[0] == me, time.Until(mine.next)
		if first && left <= 0 {
			mine.next = time.Now().Add(interval) // a probe that hangs is not waited for
		}
		r.mu.Unlock()
		var due <-chan time.Time
		switch {
		case first && left <= 0:
			return probed{}, false
		case first:
			t := time.NewTimer(left)
			defer t.Stop()
			due = t.C
		}
		select {
		case <-due:
		case <-me.first:
		case answer := <-me.told:
			return answer, true
		case <-ctx.Done():
			return probed{}, false
		case <-leaving.Done():
			return probed{}, false
		}
	}
}

// leave takes a partition out of its hour.
func (r *rota) leave(at time.Time, me *holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mine := r.of[at]; mine != nil {
		r.keep(at, mine, func(one *holder) bool { return one != me })
	}
}

// begin is called before a probe, for its answer: see [rota.tell].
func (r *rota) begin() (holds int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds
}

// tell gives the answer of a probe to those that hold for the same hour and do not know it. A hold that began after the
// probe is left out. Its refusal may be newer than the answer, because a probe can wait for a standby.
func (r *rota) tell(at time.Time, began int64, answer probed, interval time.Duration) {
	at = at.UTC().Truncate(time.Hour)
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := r.of[at]
	if mine == nil {
		return
	}
	mine.next = time.Now().Add(interval)
	r.keep(at, mine, func(one *holder) bool {
		if one.n > began || !answer.over && answer.hold.same(one.hold) {
			return true
		}
		one.told <- answer
		return false
	})
}

// keep removes the partitions of an hour that do not stay, and wakes the first one of the others. The caller has r.mu.
func (r *rota) keep(at time.Time, mine *hour, stays func(*holder) bool) {
	mine.queue = slices.DeleteFunc(mine.queue, func(one *holder) bool { return !stays(one) })
	if len(mine.queue) == 0 {
		if r.of[at] == mine {
			delete(r.of, at)
		}
		return
	}
	select {
	case mine.queue[0].first <- struct{}{}:
	default:
	}
}
