package pipeline

import (
	"time"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// item is a decision on its way, or a Kafka record that did not read as decisions.
type item struct {
	entry *home.Entry
	env   *envelope.Envelope // of its Kafka record
	index int                // place inside its Kafka record; envelope.NoIndex where it was never decoded
	value []byte             // what is forwarded if it is
	log   *decision.Log      // nil where the decoder refused it

	to      home.Home       // where it has to go; None while it may still get a row
	cause   *envelope.Cause // nil while it has nowhere to go
	attempt int             // what x-retry-attempt will say
	behind  *item           // an earlier one of the same identity that is parked, too: no sooner than that one is this one due
	id      string          // dead-letter id, once sealed
	shared  []held          // nil where it is one decision; else those of the record that have this letter together
	aside   bool            // foreseen to be refused, and not written with the others
}

// open says that the item still wants a row.
func (it *item) open() bool { return it.to == home.None && it.entry.Home() == home.None }

// send marks where the item has to go, and why, which it may share with others.
func (it *item) send(to home.Home, c *envelope.Cause, attempt int) {
	it.to, it.cause, it.attempt = to, c, attempt
}

// wanting are the items that still want a row, in order: items itself where all do, so neither is written to.
func wanting(items []*item) []*item {
	n := 0
	for _, it := range items {
		if it.open() {
			n++
		}
	}
	if n == len(items) {
		return items[:n:n]
	}
	if n == 0 {
		return nil
	}
	open := make([]*item, 0, n)
	for _, it := range items {
		if it.open() {
			open = append(open, it)
		}
	}
	return open
}

// homed tells of decisions that have their homes, all of the batch's or a portion.
func (c *carrier) homed(b *home.Batch, items []*item) {
	report := c.report(b, items)
	c.observer.Homed(report)
	c.trace.Homed(report)
}

// report tells of a batch of which every decision has its home.
func (c *carrier) report(b *home.Batch, items []*item) Report {
	return Report{
		Topic: c.topic, Partition: c.partition, Records: len(b.Records()), First: c.first, Last: c.last, Trace: c.trace.ID(),
		Took: c.now().Sub(c.since),
		Decisions: func(yield func(Decision) bool) {
			for _, it := range items {
				if !it.each(yield) {
					return
				}
			}
		},
	}
}

func (it *item) told() Decision {
	d := Decision{Home: it.entry.Home(), Offset: it.env.Record.Offset, Index: it.index, ID: it.id}
	if it.log != nil {
		d.Time = it.log.Time
	}
	if it.cause != nil {
		d.Cause = *it.cause
	}
	return d
}

// account gives back what was taken and did not get its home.
func (c *carrier) account(items []*item, err error) {
	if err != nil && len(items) > 0 {
		c.observer.Gave(decisionsOf(items))
	}
}

// pauseOf is the pause of an item that is parked: never less than that of one before it.
func (p *Pipeline) pauseOf(it *item) time.Duration {
	if it.behind == nil {
		return p.backoff(it.attempt)
	}
	return p.backoff(max(it.attempt, it.behind.attempt))
}

// backoff is the pause before try number attempt (from 0) of a parked record.
func (p *Pipeline) backoff(attempt int) time.Duration {
	pause := p.cfg.Backoff
	for range attempt {
		if pause >= p.cfg.MaxBackoff/2 {
			return p.cfg.MaxBackoff
		}
		pause *= 2
	}
	return min(pause, p.cfg.MaxBackoff)
}
