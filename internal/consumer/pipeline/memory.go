package pipeline

import (
	"context"

	"docket/internal/record/envelope"
)

// newScratch takes scratch memory for a batch of so many records.
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

// returnScratch gives the scratch memory to a later batch, without a trace of this one. It reports whether nobody can
// still look at it, nor at the records that it was made of.
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

// awaitLarge waits until this partition may have a large record in hand, without a turn.
func (c *carrier) awaitLarge(ctx context.Context) error {
	c.turn.release()
	defer c.rest()()
	select {
	case c.larges <- struct{}{}:
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
		<-c.larges
	}
}
