package pipeline

import (
	"context"
	"slices"

	"docket/internal/record/home"
)

// writePortions writes items by portions, each all or none. It returns the first portion that fails for good.
func (c *carrier) writePortions(ctx context.Context, items []*item) (failed []*item, err error) {
	for len(items) > 0 {
		size, err := c.afford(ctx, c.portion.of(len(items)))
		if err != nil {
			return items, err
		}
		// The wait for the turn is not part of the time of a row.
		c.awaitTurn(ctx)
		from := c.now()
		err = c.writeGranted(ctx, items[:size], false)
		if err == nil {
			c.portion.took(size, c.now().Sub(from))
		} else if ctx.Err() == nil {
			c.portion.failed(size, classify(ctx, err))
		}
		if err := c.retry(ctx, batchFailed, items[:size], err); err != nil {
			return items[:size], err
		}
		items = items[size:]
	}
	return nil, nil
}

// writeAndRetry writes items, and again after each pause while the table of decisions says so.
func (c *carrier) writeAndRetry(ctx context.Context, of scope, items []*item, fresh bool) error {
	if len(items) == 0 {
		return nil
	}
	return c.retry(ctx, of, items, c.write(ctx, items, fresh))
}

// retry writes items that failed with err once more after each of the pauses.
func (c *carrier) retry(ctx context.Context, of scope, items []*item, err error) error {
	parts := 1
	for _, pause := range c.cfg.RetryPauses {
		if err == nil {
			return nil
		}
		f := c.factsOf(ctx, of, err)
		f.pauses = true
		then := c.decide(f).then
		if !then.retries() {
			return err
		}
		// Leaving cuts the pause short: the next try is the last chance of a home in this process.
		c.pause(ctx, pause)
		c.observer.Retried()
		if then == retryInHalves {
			parts *= 2
		}
		err = c.writeParts(ctx, homeless(items), parts)
		if then == retryOnce {
			return err
		}
	}
	return err
}

// writeParts writes items in this many parts, each all or none, on a fresh connection, up to the first failure.
func (c *carrier) writeParts(ctx context.Context, items []*item, parts int) error {
	for part := range slices.Chunk(items, (len(items)+parts-1)/parts) {
		if err := c.write(ctx, part, true); err != nil {
			return err
		}
	}
	return nil
}

// write stores items, each transaction all or none, and gives those that have a row their home. It is one transaction
// unless a limit grants fewer rows. It ends with the first failure.
func (c *carrier) write(ctx context.Context, items []*item, fresh bool) error {
	for len(items) > 0 {
		granted, err := c.afford(ctx, len(items))
		if err == nil {
			err = c.writeGranted(ctx, items[:granted], fresh)
		}
		if err != nil {
			return err
		}
		items = items[granted:]
	}
	return nil
}

// writeGranted stores items in one transaction and gives those that have a row their home.
func (c *carrier) writeGranted(ctx context.Context, items []*item, fresh bool) error {
	c.awaitTurn(ctx)
	rows := c.scratch.rowsOf(items)
	c.pulse()
	outcomes, err := c.db.Store(ctx, rows, fresh)
	c.pulse()
	if err != nil {
		c.scratch.spoil()
		// A write that ended because the program stops is not a failure.
		if ctx.Err() == nil {
			c.failed(classify(ctx, err), len(items))
		}
		return withRowHint(err, items)
	}
	for i, it := range items {
		switch outcomes[i] {
		case Stored:
			it.entry.Give(home.Row)
			c.parked.reset()
			c.accepted = true
		case Present:
			it.entry.Give(home.Duplicate)
			c.parked.reset()
		case Conflicting:
			it.conflict()
		}
	}
	return nil
}
