package pipeline

import (
	"context"
	"sync"
	"time"
)

// looks is how many times in a probe interval a database that is away is looked for, by one partition for all.
const looks = 5

// lookout is where the partitions of a process wait that hold because the database is away, which it is for all of them.
// One at a time probes, as soon as the last such look is a part of a probe interval ago; who finds the database wakes the
// others, and each then probes for itself. So the first row comes soon after the database, however few partitions hold,
// and a server that is just recovering is asked no more often, however many do. Its zero value is ready. It is safe for
// concurrent use.
type lookout struct {
	mu   sync.Mutex
	next time.Time     // when the next look is due
	back chan struct{} // closed when somebody found the database
}

// wait returns when it is for the caller to look, or when somebody found the database, or when ctx or leaving ends. A look
// that takes longer than an interval is not waited for.
func (l *lookout) wait(ctx, leaving context.Context, interval time.Duration) {
	for first := true; ; first = false {
		now := time.Now()
		l.mu.Lock()
		due := !now.Before(l.next)
		switch {
		case due && first: // it was away a moment ago
			l.next = now.Add(interval / looks)
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

// looked tells of the outcome of a look: found wakes all who wait.
func (l *lookout) looked(found bool, interval time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := time.Now().Add(interval / looks); next.Before(l.next) {
		l.next = next
	}
	if found && l.back != nil {
		close(l.back)
		l.back = nil
	}
}
