package pipeline

import "context"

// store gives every decision its row, or marks where it has to go instead. It returns only when no item is left open, or
// with an error when the batch is to be left uncommitted.
func (c *carrier) store(ctx context.Context, items []*item) error {
	c.batch = homeless(items)
	c.foreseeLikely(ctx, c.batch)
	for open := c.batch; len(open) > 0; open = homeless(items) {
		failed, err := c.writePortions(ctx, c.unsuspected(open))
		if err == nil {
			err = c.confirm(ctx)
		} else {
			// Items that were written before have their homes, by portions before the one that failed or by a retry in parts.
			err = c.resolve(ctx, homeless(open), homeless(failed), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writePortions writes items by portions, each all or none, up to the first that fails for good: that one is returned.
func (c *carrier) writePortions(ctx context.Context, items []*item) (failed []*item, err error) {
	for len(items) > 0 {
		// Waiting for the turn is not part of the time that a row takes.
		c.awaitTurn(ctx)
		size := c.portion.of(len(items))
		from := c.now()
		err := c.write(ctx, items[:size], false)
		if err == nil {
			c.portion.took(size, c.now().Sub(from))
		} else if ctx.Err() == nil {
			c.portion.failed(size, verdictOn(ctx, err))
		}
		if err := c.retry(ctx, batchFailed, items[:size], err); err != nil {
			return items[:size], err
		}
		items = items[size:]
	}
	return nil, nil
}

// resolve observes, decides and acts until a failed write needs no more decisions. open are all items of the batch that
// want a row, failed are those of the portion that failed with err. nil means: look again at the items that are open.
func (c *carrier) resolve(ctx context.Context, open, failed []*item, err error) error {
	var (
		lockedOut []*item // of days that are locked
		probe     error
		found     findings
	)
	f := c.factsOf(ctx, batchFailed, err)
	f.check = c.foreseeable(open, err)
	for {
		f.leaving = c.leaving()
		switch r := c.decide(f); r.then {
		case askDays:
			lockedOut = c.lockedDays(ctx, open)
			f.days = answerOf(len(lockedOut) > 0)
		case askBreaker:
			f.breaker = answerOf(c.parked.admit())
		case askProbe:
			probe = c.probe(ctx)
			f.probedWith(ctx, probe)
			c.accepted = c.accepted || probe == nil && f.of == batchFailed
		case askConstraint:
			f.foreseen = answerOf(c.suspectForeseen(ctx, open, err))
		case isolate:
			found = c.isolate(ctx, failed, err)
			f, probe = found.facts, found.probe

		case leave:
			if f.stopped {
				return ctx.Err()
			}
			return errLeft
		case hold:
			return c.hold(ctx, holdFor(r, f, probe))
		case parkAll:
			c.park(f.verdict, homeless(open)...)
			return nil
		case postpone:
			c.postpone(f.verdict, lockedOut...)
			return nil
		case judgeEach:
			for _, s := range found.suspects {
				c.route(ctx, s.Item, s.Err)
			}
			found.ahead.parkBehind(homeless(open))
			return nil
		default:
			return nil
		}
	}
}
