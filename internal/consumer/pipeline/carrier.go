package pipeline

import (
	"context"
	"errors"
	"time"
)

// errLeft ends the carrying of a batch without a commit, because the partition is being given up or the program
// stops. The next owner of the partition reads the batch again.
var errLeft = errors.New("left uncommitted: the partition is being given up")

// carrier carries one batch. The goroutine of its partition owns it, except for its progress.
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
	abandon   context.CancelCauseFunc // ends the writes of the batch, which is then left; nil without a limit

	// Decoding.
	scratch *scratch // the memory of the batch, once it is decoded
	exposed bool     // a failed write may still look at an earlier scratch, a failed publication at the records
	large   large    // the record that is opened in portions
	flood   flood    // refused decisions of the record that is being opened
	items   []*item  // in hand

	// Storing.
	batch     []*item  // all that may get a row, as decoded
	suspected []*item  // a CHECK would refuse them, according to the table
	foreseen  []string // constraints that the table was asked about for this batch, each once
	accepted  bool     // the table took a good row while the batch was in hand
}

// low reports whether the rows of the batch count against the low limit.
func (c *carrier) low() bool {
	return c.cfg.Replay || c.turn.lane.Low()
}

// leaving reports whether the partition is being given up or the program stops.
func (c *carrier) leaving() bool { return c.a.Leaving().Err() != nil }

// pause waits for d, or until the partition is being given up or ctx ends.
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

// awaitTurn gets back the turn of a batch in hand, if the batch gave it up.
func (c *carrier) awaitTurn(ctx context.Context) {
	if !c.turn.mine {
		defer c.rest()()
		c.turn.acquire(ctx, c.a.Leaving())
	}
}
