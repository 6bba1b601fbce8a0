package pipeline

import (
	"context"
	"slices"

	"docket/internal/errclass"
	"docket/internal/record/home"
)

// store gives every decision its row, or marks where it has to go instead. It returns only when none is left open, or
// with an error when the batch is to be left uncommitted.
func (c *carrier) store(ctx context.Context, items []*item) error {
	c.batch = wanting(items)
	c.lookAhead(ctx, c.batch)
	for open := c.batch; len(open) > 0; open = wanting(items) {
		failed, err := c.pour(ctx, c.free(open))
		if err == nil {
			if err := c.accuse(ctx); err != nil {
				return err
			}
			continue
		}
		// What was written before has its home, by portions before the one that failed or by a retry in parts.
		if err := c.judge(ctx, wanting(open), wanting(failed), err); err != nil {
			return err
		}
	}
	return nil
}

// pour writes items by portions, each all or none, up to the first that fails for good: that one is returned.
func (c *carrier) pour(ctx context.Context, items []*item) (failed []*item, err error) {
	for len(items) > 0 {
		c.takeTurn(ctx) // waiting for it is no time of a row's
		size := c.portion.of(len(items))
		from := c.now()
		err := c.write(ctx, items[:size], false)
		if err == nil {
			c.portion.took(size, c.now().Sub(from))
		} else if ctx.Err() == nil {
			c.portion.failed(size, judged(ctx, err))
		}
		if err := c.again(ctx, items[:size], err); err != nil {
			return items[:size], err
		}
		items = items[size:]
	}
	return nil, nil
}

// tries writes items, again after each of the pauses while the failure is the moment's and not the items'.
func (c *carrier) tries(ctx context.Context, items []*item, fresh bool) error {
	if len(items) == 0 {
		return nil
	}
	return c.again(ctx, items, c.write(ctx, items, fresh))
}

// again writes items that failed with err once more after each of the pauses.
func (c *carrier) again(ctx context.Context, items []*item, err error) error {
	parts := 1
	for _, pause := range c.cfg.RetryPauses {
		v := judged(ctx, err)
		if err == nil || !worthRetrying(v.Rule) || ctx.Err() != nil {
			return err
		}
		c.pause(ctx, pause) // cut short when leaving: the try that follows is the last chance of a home here
		c.observer.Retried()
		if v.Rule == errclass.RetryHalvesPark {
			parts *= 2
		}
		err = c.writeParts(ctx, wanting(items), parts)
		if v.Rule == errclass.RetryHold {
			return err
		}
	}
	return err
}

func worthRetrying(r errclass.Rule) bool {
	switch r {
	case errclass.RetryPark, errclass.RetryParkOnce, errclass.RetryHalvesPark, errclass.RetryBisect,
		errclass.RetryProbeBisect, errclass.RetryHold:
		return true
	}
	return false
}

// writeParts writes items in so many parts, each all or none, on a fresh connection, up to the first that fails.
func (c *carrier) writeParts(ctx context.Context, items []*item, parts int) error {
	for part := range slices.Chunk(items, (len(items)+parts-1)/parts) {
		if err := c.write(ctx, part, true); err != nil {
			return err
		}
	}
	return nil
}

// write stores items in one go and gives those that have a row their home.
func (c *carrier) write(ctx context.Context, items []*item, fresh bool) error {
	c.takeTurn(ctx)
	rows := c.desk.rowsOf(items)
	c.pulse()
	outcomes, err := c.db.Store(ctx, rows, fresh)
	c.pulse()
	if err != nil {
		c.desk.spoil()
		if ctx.Err() == nil { // what our own stopping cuts short is not a failure
			c.failed(judged(ctx, err), len(items))
		}
		return stumbled(err, items)
	}
	for i, it := range items {
		switch outcomes[i] {
		case Stored:
			it.entry.Give(home.Row)
			c.parked.reset()
			c.proved = true
		case Present:
			it.entry.Give(home.Duplicate)
			c.parked.reset()
		case Conflicting:
			it.conflict()
		}
	}
	return nil
}
