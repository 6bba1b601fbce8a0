package pipeline

import "context"

// turn is one partition's right to have a batch decoded and written. There are [Config.Turns] of them at most, so that
// the memory of decoded batches is bounded however many partitions are ours.
//
// It is never kept while waiting for anything that may not come: not for records, not through a pause between tries or a
// hold, not for a commit. What it is kept for ends by itself or by its deadline: decoding, a write or a probe, and the
// forwarding of much of a batch for as long as Kafka takes it. So every turn comes back, and whoever waits for one is
// served in the order of asking.
type turn struct {
	turns chan struct{} // holds as many as are taken; nil: there is no limit
	mine  bool
}

// acquire waits for a turn. It comes back without one when ctx or leaving ends: a partition that is given up waits for
// nobody, and what it has in hand still gets the one more try that it is owed.
func (t *turn) acquire(ctx, leaving context.Context) {
	if t.mine || t.turns == nil {
		return
	}
	select {
	case t.turns <- struct{}{}:
		t.mine = true
	case <-ctx.Done():
	case <-leaving.Done():
	}
}

func (t *turn) release() {
	if t.mine {
		t.mine = false
		<-t.turns
	}
}
