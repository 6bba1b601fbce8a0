package pipeline

import "context"

// hold waits until the database takes a known-good row again. Meanwhile nothing is parked, dead-lettered or
// committed. Fetching for this partition stops, and the program stays a member of the group.
func (c *carrier) hold(ctx context.Context, h Hold) error {
	return c.waitUntil(ctx, h, func() (Hold, bool) {
		err := c.probe(ctx)
		f := facts{of: partitionHeld}
		f.probedWith(ctx, err)
		r := c.decide(f)
		if r.then == goOn {
			c.parked.reset()
			c.election.probed(true, c.cfg.ProbeInterval)
			return h, true
		}
		now := holdFor(r, f, err)
		c.election.probed(ctx.Err() == nil && !isAway(now), c.cfg.ProbeInterval)
		return now, false
	})
}

// waitUntil calls goOn until it returns true, at most a probe interval apart. It reports the reason, and again when
// the reason changes.
func (c *carrier) waitUntil(ctx context.Context, h Hold, goOn func() (Hold, bool)) error {
	defer c.a.Hold()()
	tell := c.tellHold(h)
	defer func() { tell() }()
	for {
		if c.await(ctx, h); ctx.Err() != nil || c.leaving() {
			return errLeft
		}
		now, ok := goOn()
		if ok {
			return nil
		}
		if now.Event() != h.Event() || now.Code != h.Code {
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

// await waits for the next probe of a hold.
func (c *carrier) await(ctx context.Context, h Hold) {
	if !isAway(h) {
		c.pause(ctx, c.cfg.ProbeInterval)
		return
	}
	defer c.rest()()
	c.turn.release()
	c.election.wait(ctx, c.a.Leaving(), c.cfg.ProbeInterval)
}
