package pipeline

import "docket/internal/record/home"

// homed reports decisions that have their homes: all of the batch, or a portion.
func (c *carrier) homed(b *home.Batch, items []*item) {
	report := c.homedBatch(b, items)
	c.observer.Homed(report)
	c.trace.Homed(report)
}

// homedBatch describes a batch whose decisions all have a home.
func (c *carrier) homedBatch(b *home.Batch, items []*item) HomedBatch {
	return HomedBatch{
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
