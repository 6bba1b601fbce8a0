package pipeline

import "docket/internal/record/home"

// homed reports decisions that have their homes: all of the batch, or a portion.
func (c *carrier) homed(b *home.Batch, items []*item) {
	report := c.report(b, items)
	c.observer.Homed(report)
	c.trace.Homed(report)
}

// report makes the report of a batch whose decisions all have a home.
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
