package pipeline

import "sync/atomic"

// breaker counts the whole batches that were parked in a row.
type breaker struct {
	limit int64 // 0: no limit
	row   atomic.Int64
}

// admit reports whether one more batch may be parked, and counts it then.
func (b *breaker) admit() bool {
	if b.limit <= 0 {
		return true
	}
	if b.row.Add(1) > b.limit {
		b.row.Add(-1)
		return false
	}
	return true
}

// trip makes the next failed batch hold at once.
func (b *breaker) trip() { b.row.Store(max(0, b.limit)) }

// reset forgets the count, after a row was stored or the database answered again.
func (b *breaker) reset() { b.row.Store(0) }
