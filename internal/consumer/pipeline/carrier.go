package pipeline

import (
	"context"
	"errors"
	"time"
)

// errLeft ends the carrying of a batch that is left uncommitted because the partition is being given up or the program
// stops: the next owner of the partition reads it again.
var errLeft = errors.New("left uncommitted: the partition is being given up")

// carrier carries one batch. The goroutine of its partition owns it, apart from its progress.
type carrier struct {
	*process
	progress

	// The partition, and where the batch is in it.
	a         Assignment
	topic     string
	partition int32
	first     int64 // offset of the first record
	last      int64 // offset of the last record
	trace     Trace
	turn      *turn

	// Decoding.
	scratch *scratch // the memory of the batch, once it is decoded
	exposed bool     // a write that failed may still look at an earlier scratch of the batch
	large   large    // the record that is opened in portions
	flood   flood    // refused decisions of the record that is being opened
	items   []*item  // that are in hand

	// Storing.
	batch     []*item  // that wanted a row when they were decoded
	suspected []*item  // that a CHECK would refuse, as the table says
	foreseen  []string // constraints that were asked about for this batch, each once
	accepted  bool     // the table took a good row since the batch is in hand
}

// leaving reports whether the partition is being given up or the program stops.
func (c *carrier) leaving() bool { return c.a.Leaving().Err() != nil }

// pause waits, but not longer than until the partition is being given up or ctx ends.
func (c *carrier) pause(ctx context.Context, d time.Duration) {
	defer c.rest()()
	c.turn.release()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-c.a.Leaving().Done():
	}
}

// awaitTurn waits for the turn of a batch that is in hand.
func (c *carrier) awaitTurn(ctx context.Context) {
	if !c.turn.mine {
		defer c.rest()()
		c.turn.acquire(ctx, c.a.Leaving())
	}
}
