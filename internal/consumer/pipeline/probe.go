package pipeline

import (
	"context"
	"slices"
	"time"

	"docket/internal/errclass"
)

// probe asks the database for a known-good row at the time of the batch, or of the present where that time may be what
// the table refuses: then the time is to blame, not the table. It is that of the whole batch, to the end: those that
// still want a row may do so for their times' sake.
func (c *carrier) probe(ctx context.Context) error {
	c.pulse()
	defer c.pulse()
	err := c.db.Probe(ctx, medianTime(c.batch))
	if timeMayMatter(err) {
		err = c.db.Probe(ctx, time.Time{})
	}
	return err
}

// timeMayMatter says that a probe was refused for what another time could change: a constraint that has a name, or a
// trigger. A partition that is missing is neither: the table lacks it, and takes the rows once it is there.
func timeMayMatter(err error) bool {
	return errclass.Classify(err).Rule == errclass.Await || dataFault(err)
}

// medianTime is the time of a typical item: the probe writes at this time, so that a single odd timestamp in the batch
// does not decide where the probe goes.
func medianTime(items []*item) time.Time {
	times := make([]time.Time, len(items))
	for i, it := range items {
		times[i] = it.log.Time
	}
	slices.SortFunc(times, time.Time.Compare)
	return times[len(times)/2]
}
