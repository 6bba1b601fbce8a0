package pipeline

import "context"

// store gives every decision its row, or marks another destination. It returns when no item is open, or with an error
// if the batch is to be left uncommitted.
func (c *carrier) store(ctx context.Context, items []*item) error {
	ctx, done := c.abandonable(ctx)
	defer done()
	c.batch = homeless(items)
	c.foreseeLikely(ctx, c.batch)
	for open := c.batch; len(open) > 0; open = homeless(items) {
		failed, err := c.writePortions(ctx, c.unsuspected(open))
		if err == nil {
			err = c.confirm(ctx)
		} else {
			// Some items of the failed write may have a row from a retry in parts.
			err = c.resolve(ctx, homeless(open), homeless(failed), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolve observes, decides and acts until a failed write needs no more decisions. The items in open may still get a
// row; those in failed are of the portion that failed with err. After nil the caller looks at the open items again.
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
				return context.Cause(ctx)
			}
			return errLeft
		case hold:
			return c.hold(ctx, holdFor(r, f, probe))
		case parkAll:
			c.park(f.failure, homeless(open)...)
			return nil
		case postpone:
			c.postpone(f.failure, lockedOut...)
			return nil
		case judgeEach:
			refused := hours{}
			for _, s := range found.suspects {
				c.route(ctx, s.Item, s.Err, refused)
			}
			found.ahead.parkBehind(homeless(open))
			c.large.waitFor(found.ahead)
			return nil
		default:
			return nil
		}
	}
}
