package pipeline

import (
	"context"
	"sync"
	"time"
)

// probesPerInterval is how often in a probe interval one partition probes for all, while the database is away.
const probesPerInterval = 5

// election chooses the partition that probes for all while the database is away. One at a time probes, as soon as the
// last probe is a part of a probe interval ago. A partition whose probe finds the database wakes the others, and each then
// probes for itself. So the first row comes soon after the database returns, however few partitions hold, and a server
// that is just recovering is asked no more often, however many do. Its zero value is ready. It is safe for concurrent use.
type election struct {
	mu   sync.Mutex
	next time.Time     // when the next probe is due
	back chan struct{} // closed when a probe found the database
}

// wait returns when the caller has to probe, when a probe found the database, or when ctx or leaving ends. It does not
// wait for a probe that takes longer than an interval.
func (l *election) wait(ctx, leaving context.Context, interval time.Duration) {
	for first := true; ; first = false {
		now := time.Now()
		l.mu.Lock()
		due := !now.Before(l.next)
		switch {
		case due && first: // it was away a moment ago
			l.next = now.Add(interval / probesPerInterval)
		case due:
			l.next = now.Add(interval)
			l.mu.Unlock()
			return
		}
		if l.back == nil {
			l.back = make(chan struct{})
		}
		back, left := l.back, l.next.Sub(now)
		l.mu.Unlock()

		t := time.NewTimer(left)
		select {
		case <-t.C:
			select {
			case <-back: // at this very moment
				return
			default:
			}
			continue
		case <-back:
		case <-ctx.Done():
		case <-leaving.Done():
		}
		t.Stop()
		return
	}
}

// probed reports the outcome of a probe: found wakes all who wait.
func (l *election) probed(found bool, interval time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := time.Now().Add(interval / probesPerInterval); next.Before(l.next) {
		l.next = next
	}
	if found && l.back != nil {
		close(l.back)
		l.back = nil
	}
}
