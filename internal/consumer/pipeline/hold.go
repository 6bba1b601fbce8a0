package pipeline

import (
	"context"
)

// hold stands still until the database takes a known-good row again. Nothing is parked, dead-lettered or committed
// meanwhile, fetching for this partition stops, membership of the group goes on.
func (c *carrier) hold(ctx context.Context, h Hold) error {
	return c.standStill(ctx, h, func() (Hold, bool) {
		err := c.probe(ctx)
		f := facts{of: partitionHeld}
		f.probedWith(ctx, err)
		r := c.decide(f)
		if r.then == goOn {
			c.parked.reset()
			c.lookout.looked(true, c.cfg.ProbeInterval)
			return h, true
		}
		now := holdFor(r, f, err)
		c.lookout.looked(ctx.Err() == nil && !nowhere(now), c.cfg.ProbeInterval)
		return now, false
	})
}

// standStill asks again and again, at most a probe interval apart, whether to go on; meanwhile the reason is told, anew
// whenever it changes.
func (c *carrier) standStill(ctx context.Context, h Hold, goOn func() (Hold, bool)) error {
	defer c.a.Hold()()
	tell := c.held(h)
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
			tell = c.held(h)
		}
	}
}

// held tells that the batch stands still, until release is called.
func (c *carrier) held(h Hold) (release func()) {
	told, followed := c.observer.Held(c.topic, c.partition, h), c.trace.Held(h)
	return func() { followed(); told() }
}

// nowhere says that a hold is for a database that is away, or takes no writes until another node does.
func nowhere(h Hold) bool { return h.Reason == ReasonDatabaseAway || h.Reason == ReasonReadOnly }

// await waits for the next probe of a hold.
func (c *carrier) await(ctx context.Context, h Hold) {
	if !nowhere(h) {
		c.pause(ctx, c.cfg.ProbeInterval)
		return
	}
	defer c.rest()()
	c.turn.giveBack()
	c.lookout.wait(ctx, c.a.Leaving(), c.cfg.ProbeInterval)
}
