package pipeline

import (
	"context"

	"docket/internal/record/home"
)

// begin takes a batch of a partition in hand.
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

// release gives back the memory of a batch that has its homes: the commit needs none of it.
func (c *carrier) release(b *home.Batch) {
	if c.returnScratch() && !c.exposed {
		b.Release()
	}
	c.releaseLarge()
}

// commit waits for as long as the partition is ours and the brokers do not take the commit. The homes stay where the
// commit fails: the next commit covers the offset or, where the partition is lost, the records are read again and found
// to be duplicates.
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

// finish ends the carrying of a batch, whatever became of it, and gives back all that it took.
func (c *carrier) finish(err error) {
	c.trace.End(err)
	c.account(err)
	c.turn.release()
	c.inHand.remove(&c.progress)
	c.returnScratch()
	c.releaseLarge()
}

// account gives back what was taken and did not get its home.
func (c *carrier) account(err error) {
	if err != nil && len(c.items) > 0 {
		c.observer.Gave(decisionsOf(c.items))
	}
}
