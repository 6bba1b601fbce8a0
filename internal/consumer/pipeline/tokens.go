package pipeline

import "context"

// afford returns how many of these rows the limit allows to write now. It is all of them without a limit. While it waits,
// the batch has no turn.
//
// A wait that ends because the partition is being given up leaves the batch: its context ends, and everything unwinds as
// if the program was stopped. Rows that were written stay, nothing is committed, and no failure is counted.
func (c *carrier) afford(ctx context.Context, rows int) (granted int, err error) {
	if c.cfg.Tokens == nil {
		return rows, nil
	}
	wake := func() {}
	pause := func() {
		c.turn.release()
		wake = c.rest()
	}
	// The turn comes before the next batch is granted its rows. So a database that takes no rows for a while does not
	// let grants pile up, which would all be written when it is back.
	resume := func() { c.awaitTurn(ctx) }
	granted = c.cfg.Tokens.Take(ctx, c.a.Leaving(), c.low(), rows, pause, resume)
	wake()
	if granted == 0 {
		c.abandon(errLeft)
		return 0, errLeft
	}
	return min(granted, rows), nil
}

// abandonable returns a context for the writes of a batch that [carrier.afford] can end.
func (c *carrier) abandonable(ctx context.Context) (writing context.Context, done func()) {
	if c.cfg.Tokens == nil {
		return ctx, func() {}
	}
	writing, c.abandon = context.WithCancelCause(ctx)
	return writing, func() { c.abandon(nil) }
}
