package pipeline

import (
	"context"

	"docket/internal/record/home"
)

// begin starts to carry a batch of a partition.
func (p *process) begin(a Assignment, t *turn) *carrier {
	c := &carrier{process: p, a: a, turn: t, topic: a.Topic(), partition: a.Partition(), trace: untraced{}}
	c.clock, c.since = p.now, p.now()
	c.pulse()
	p.inHand.add(&c.progress)
	return c
}

// follow notes where the batch is and begins its trace.
func (c *carrier) follow(ctx context.Context, b *home.Batch) context.Context {
	if records := b.Records(); len(records) > 0 {
		c.first, c.last = records[0].Offset, records[len(records)-1].Offset
	}
	if c.cfg.Tracer != nil {
		ctx, c.trace = c.cfg.Tracer.Batch(ctx, c.since, b.Records())
	}
	return ctx
}

// release frees the memory of a batch whose decisions all have a home. The commit does not need it. Records that the
// broker acknowledged are not read again, though they share memory with the forwarded ones.
func (c *carrier) release(b *home.Batch) {
	if c.returnScratch() && !c.exposed {
		b.Release()
	}
	c.releaseLarge()
}

// commit retries until the brokers take the commit or the partition is lost. A failed commit loses nothing: the next
// commit covers the offset. After a lost partition the records are read again and found to be duplicates.
func (c *carrier) commit(ctx context.Context, s home.Settled) {
	wake := c.rest()
	done := c.trace.Committing()
	err := c.a.Commit(ctx, s)
	done(err)
	wake()
	if err != nil {
		c.on(c.log.Warn()).Err(err).Int64(keyOffset, s.Offset()).Msg("offset not committed")
	}
}

// finish ends the carrying of a batch, with or without an error, and frees all that the batch used.
func (c *carrier) finish(err error) {
	c.trace.End(err)
	c.account(err)
	c.turn.release()
	c.inHand.remove(&c.progress)
	c.returnScratch()
	c.releaseLarge()
}

// account reports the decisions that were read and got no home.
func (c *carrier) account(err error) {
	if err != nil && len(c.items) > 0 {
		c.observer.Gave(decisionsOf(c.items))
	}
}
