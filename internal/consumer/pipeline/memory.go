package pipeline

import (
	"context"

	"docket/internal/record/envelope"
)

// newScratch takes scratch memory for a batch of this many records.
func (p *process) newScratch(records int) *scratch {
	var d *scratch
	select {
	case d = <-p.scratches:
	default:
		d = &scratch{}
	}
	d.decoder.Begin(records)
	d.envelopes = room(d.envelopes, records)
	d.items = room(d.items, records)
	d.all = room(d.all, records)
	return d
}

// returnScratch clears the scratch memory and gives it to a later batch. It reports whether no pending write can
// still read the scratch or the records.
func (c *carrier) returnScratch() (clean bool) {
	d := c.scratch
	c.scratch = nil
	if d == nil || d.spoiled {
		return false
	}
	d.decoder.Begin(0)
	d.opener = envelope.Opener{}
	clear(d.envelopes)
	clear(d.items)
	clear(d.all)
	clear(d.rows[:cap(d.rows)])
	select {
	case c.scratches <- d:
	default:
	}
	return true
}

// awaitLarge waits until this partition may have a large record in hand. It waits without a turn. The low lanes and the
// urgent lane have a right each: a large record of a low lane may wait for its rows for as long as Redis is away.
func (c *carrier) awaitLarge(ctx context.Context) error {
	c.turn.release()
	defer c.rest()()
	select {
	case c.rightToLarge() <- struct{}{}:
		c.large.mine = true
	case <-ctx.Done():
		return ctx.Err()
	case <-c.a.Leaving().Done():
		return errLeft
	}
	c.turn.acquire(ctx, c.a.Leaving())
	return nil
}

func (c *carrier) releaseLarge() {
	if c.large.mine {
		c.large = large{}
		<-c.rightToLarge()
	}
}

// rightToLarge holds one while a partition of the same kind of lane has a large record in hand.
func (c *carrier) rightToLarge() chan struct{} {
	if c.low() {
		return c.larges[0]
	}
	return c.larges[1]
}
