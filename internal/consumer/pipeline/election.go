package pipeline

import (
	"context"
	"sync"
	"time"
)

// probesPerInterval is the number of shared probes in a probe interval while the database is away.
const probesPerInterval = 5

// election chooses the partition that probes for all while the database is away. One partition probes at a time, and
// probes start a fifth of the interval apart. A successful probe wakes the other partitions, and each then probes for
// itself. So the first row comes soon after the database returns, even if few partitions hold. A recovering server
// gets no more probes if many hold. The zero value is ready. It is safe for concurrent use.
type election struct {
	mu   sync.Mutex
	next time.Time     // the next probe is due then
	back chan struct{} // closed when a probe found the database
}

// wait returns when the caller has to probe, when another probe found the database, or when ctx or leaving ends. It
// does not wait longer than an interval for the probe of another partition.
func (l *election) wait(ctx, leaving context.Context, interval time.Duration) {
	for first := true; ; first = false {
		now := time.Now()
		l.mu.Lock()
		due := !now.Before(l.next)
		switch {
		case due && first: // the database was away a moment ago
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
			case <-back: // at the same moment
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

// probed reports the outcome of a probe. found wakes all waiting partitions.
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
