package frame

import (
	"context"
	"time"
)

// LookEvery is how often it is looked how things stand.
const LookEvery = 500 * time.Millisecond

// Sleep waits; false: ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
