package complete

import (
	"context"
	"sync"
	"time"

	"docket/internal/history/reader"
)

// Joined makes the answers of several shards one. Each shard has groups, topics and a ledger of its own, and waits for its
// own partitions.
func Joined(shards ...*Answers) *Answers { return &Answers{shards: shards} }

// beginAll begins in every shard at the same time.
func (a *Answers) beginAll(ctx context.Context, r Range) Begun {
	b := Begun{r: r, shards: make([]Begun, len(a.shards))}
	var asking sync.WaitGroup
	for i, one := range a.shards {
		asking.Go(func() { b.shards[i] = one.Begin(ctx, r) })
	}
	asking.Wait()
	return b
}

// endAll joins what is known of every shard. A number that one of them does not know is unknown.
func (b Begun) endAll(f Facts) reader.Completeness {
	all := b.shards[0].End(f)
	for _, one := range b.shards[1:] {
		c := one.End(f)
		all.Freshness = worse(all.Freshness, c.Freshness)
		all.CompleteUntil = earlier(all.CompleteUntil, c.CompleteUntil)
		all.Behind = both(all.Behind, c.Behind, sum)
		all.ETA, all.ETALow, all.ETAHigh = both(all.ETA, c.ETA, most), both(all.ETALow, c.ETALow, most), both(all.ETAHigh, c.ETAHigh, most)
		all.Parked, all.DeadLettered, all.Spooled = both(all.Parked, c.Parked, sum), both(all.DeadLettered, c.DeadLettered, sum), both(all.Spooled, c.Spooled, sum)
	}
	return all
}

func sum(a, b int64) int64  { return a + b }
func most(a, b int64) int64 { return max(a, b) }

// both joins two numbers; nil: one of them is unknown.
func both(a, b *int64, join func(a, b int64) int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	n := join(*a, *b)
	return &n
}

// earlier returns the earlier of two times; nil: one of them is unknown.
func earlier(a, b *time.Time) *time.Time {
	switch {
	case a == nil || b == nil:
		return nil
	case b.Before(*a):
		return b
	}
	return a
}

// worse returns the one that comes first in the order of [reader.Freshness]. NOT_FOUND comes last: only an answer
// without any decision has it.
func worse(a, b reader.Freshness) reader.Freshness {
	for _, of := range []reader.Freshness{reader.Partial, reader.Holding, reader.CatchingUp, reader.Archived, reader.Fresh} {
		if a == of || b == of {
			return of
		}
	}
	return a
}
