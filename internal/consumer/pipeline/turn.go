package pipeline

import (
	"context"

	"docket/internal/consumer/lanes"
)

// turn is one partition's right to have a batch decoded and written. There are at most as many as [Config.Turns] has,
// so that the memory of decoded batches is bounded for any number of partitions.
//
// A partition keeps its turn only during work that ends by itself or by a deadline: decoding, a write, a probe, and
// forwarding while Kafka takes everything. It gives the turn up before it waits for records, a pause, a hold or a
// commit. So every turn comes back, and waiting partitions of a lane get one in the order of asking.
type turn struct {
	turns *lanes.Turns // nil: no limit
	lane  lanes.Lane
	mine  bool
}

// acquire waits for a turn. It returns without one when ctx or leaving ends: a partition that is given up does not
// wait, and its batch still gets one more try.
func (t *turn) acquire(ctx, leaving context.Context) {
	if !t.mine && t.turns != nil {
		t.mine = t.turns.Acquire(ctx, leaving, t.lane)
	}
}

func (t *turn) release() {
	if t.mine {
		t.mine = false
		t.turns.Release(t.lane)
	}
}
