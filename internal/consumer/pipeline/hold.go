package pipeline

import (
	"context"
	"time"
)

// writeEvery is the pause between two writes of the batch in a hold. The table can be altered meanwhile so that it takes the
// batch, and none of the rows that a probe has. A write that is refused also shows the store new decisions to probe with.
const writeEvery = 30 * time.Minute

// hold waits until the database takes a known-good row again. Meanwhile nothing is parked, dead-lettered or
// committed. Fetching for this partition stops, and the program stays a member of the group.
func (c *carrier) hold(ctx context.Context, h Hold) error {
	at, wrote := medianTime(c.batch), c.now()
	return c.waitUntil(ctx, h, func(h Hold) (Hold, bool) {
		if answer, ok := c.awaitProbe(ctx, h, at); ok {
			return answer.hold, answer.over
		}
		if ctx.Err() != nil || c.leaving() {
			return h, false
		}
		began := c.rota.begin()
		err := c.probe(ctx)
		f := facts{of: partitionHeld}
		f.probedWith(ctx, err)
		r := c.decide(f)
		answer := probed{hold: h, over: r.then == goOn}
		if !answer.over {
			answer.hold = holdFor(r, f, err)
		}
		if !answer.over && !isAway(answer.hold) && c.now().Sub(wrote) >= writeEvery {
			_, err := c.writePortions(ctx, homeless(c.batch))
			answer.over, wrote = err == nil, c.now()
		}
		if answer.over {
			c.parked.reset()
		}
		found := answer.over || ctx.Err() == nil && !isAway(answer.hold)
		c.election.probed(found, c.cfg.ProbeInterval)
		if found {
			c.rota.tell(at, began, answer, c.cfg.ProbeInterval)
		}
		return answer.hold, answer.over
	})
}

// waitUntil calls goOn until it returns true. goOn waits and tries again. It returns the reason to hold on, or the one
// that it was given. waitUntil reports the reason, and again when the reason changes.
func (c *carrier) waitUntil(ctx context.Context, h Hold, goOn func(Hold) (Hold, bool)) error {
	defer c.a.Hold()()
	tell := c.tellHold(h)
	defer func() { tell() }()
	for {
		now, ok := goOn(h)
		switch {
		case ok:
			return nil
		case ctx.Err() != nil || c.leaving():
			return errLeft
		}
		if !now.same(h) {
			tell()
			h = now
			tell = c.tellHold(h)
		}
	}
}

// tellHold reports the hold until release is called.
func (c *carrier) tellHold(h Hold) (release func()) {
	told, followed := c.observer.Held(c.topic, c.partition, h), c.trace.Held(h)
	return func() { followed(); told() }
}

// isAway reports whether the database is away or takes no writes.
func isAway(h Hold) bool { return h.Reason == ReasonDatabaseAway || h.Reason == ReasonReadOnly }

// awaitProbe waits for the next probe of a hold. It returns true with the answer if another partition probed.
func (c *carrier) awaitProbe(ctx context.Context, h Hold, at time.Time) (probed, bool) {
	defer c.rest()()
	c.turn.release()
	if isAway(h) {
		c.election.wait(ctx, c.a.Leaving(), c.cfg.ProbeInterval)
		return probed{}, false
	}
	return c.rota.wait(ctx, c.a.Leaving(), at, h, c.cfg.ProbeInterval)
}
