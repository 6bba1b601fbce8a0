package pipeline

import (
	"context"
	"errors"

	"docket/internal/errclass"
)

// hold stands still until the database takes a known-good row again. Nothing is parked, dead-lettered or committed
// meanwhile, fetching for this partition stops, membership of the group goes on.
func (c *carrier) hold(ctx context.Context, h Hold) error {
	return c.standStill(ctx, h, func() (Hold, bool) {
		err := c.probe(ctx)
		if err == nil {
			c.parked.reset()
			c.lookout.looked(true, c.cfg.ProbeInterval)
			return h, true
		}
		now := blame(errclass.Classify(err), err)
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

// blame makes the reason of a hold from the failure of the batch and that of the probe, which knows better.
func blame(v errclass.Verdict, probe error) Hold {
	p := errclass.Classify(probe)
	h := Hold{Reason: ReasonDatabaseRefuses, Code: p.Code, Hint: hint(p, probe)}
	switch {
	case p.Code == "25006":
		h.Reason = ReasonReadOnly
	case p.Class == errclass.Transient || p.Class == errclass.Unknown:
		h.Reason, h.Hint = ReasonDatabaseAway, words(p)
		if v.Class == errclass.Systemic {
			h.Code, h.Hint = v.Code, words(v)
		}
	}
	return h
}

// hinting is an error that knows what an operator can do about it.
type hinting interface {
	error
	Hint() string
}

// hint is what an operator reads beside the reason: what the error itself knows to do about it, else what its code says.
func hint(v errclass.Verdict, err error) string {
	if knows, ok := errors.AsType[hinting](err); ok {
		if h := knows.Hint(); h != "" {
			return h
		}
	}
	return words(v)
}
