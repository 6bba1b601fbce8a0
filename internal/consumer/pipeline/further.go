package pipeline

import (
	"context"
	"fmt"

	"docket/internal/record/home"
)

// further reports whether the batch has more decisions, and takes the next portion of them in hand. Before that it
// reports the homes of the portion that is done.
func (c *carrier) further(ctx context.Context, b *home.Batch) (more bool, err error) {
	l := &c.large
	if l.opened == len(l.entries) {
		return false, nil
	}
	c.homed(b, c.items)
	c.items = nil
	c.exposed = !c.returnScratch() || c.exposed
	if c.leaving() {
		return false, errLeft
	}
	c.awaitTurn(ctx)
	c.scratch = c.newScratch(1)
	r, env := b.Records()[0], &take(&c.scratch.envelopes, 1)[0]
	*env = c.openEnvelope(r)
	read, refused := c.read(r, l.plain, c.cfg.MaxRecordBytes, l.opened, c.room(c.cfg.BatchBytes).decisions)
	if refused != nil { // the decoder panicked
		c.closeFlood(env, l.plain)
		c.refuseRest(env, refused)
		c.took()
		return true, nil
	}
	if len(read.Parts) == 0 || read.Count != len(l.entries) {
		return false, fmt.Errorf("open the record at offset %d again: it does not read as it did before", r.Offset)
	}
	c.openItems(env, l.entries[l.opened:], &read)
	if l.opened += len(read.Parts); l.opened == len(l.entries) {
		c.closeFlood(env, l.plain)
	}
	c.took()
	l.parked.parkBehind(homeless(c.items))
	return true, nil
}
