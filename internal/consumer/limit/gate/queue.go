package gate

import (
	"context"
	"slices"
	"sync"
	"time"
)

// queue lets one write at a time ask the limit, in the order in which they came.
type queue struct {
	mu    sync.Mutex
	taken bool
	waits []chan struct{} // closed when its turn comes
}

// moment is how long a write waits for the question of another before it pauses. Most questions take less. A batch that pauses
// gives its turn to another batch, and both are in memory then.
const moment = 20 * time.Millisecond

// enter waits until this write is the first, and reports whether it is. It is not if a context ended. It calls rest if that takes
// more than a moment.
func (q *queue) enter(ctx, leaving context.Context, rest func()) bool {
	q.mu.Lock()
	if !q.taken {
		q.taken = true
		q.mu.Unlock()
		return true
	}
	first := make(chan struct{})
	q.waits = append(q.waits, first)
	q.mu.Unlock()

	over := time.NewTimer(moment)
	defer over.Stop()
	for {
		select {
		case <-first:
			return true
		case <-over.C:
			rest()
		case <-ctx.Done():
			q.quit(first)
			return false
		case <-leaving.Done():
			q.quit(first)
			return false
		}
	}
}

// leave makes the next one the first.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waits) == 0 {
		q.taken = false
		return
	}
	close(q.waits[0])
	q.waits = slices.Delete(q.waits, 0, 1)
}

// quit gives up a place. It may have become the first meanwhile.
func (q *queue) quit(first chan struct{}) {
	q.mu.Lock()
	at := slices.Index(q.waits, first)
	if at >= 0 {
		q.waits = slices.Delete(q.waits, at, at+1)
	}
	q.mu.Unlock()
	if at < 0 {
		q.leave()
	}
}
