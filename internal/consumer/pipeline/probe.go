package pipeline

import (
	"context"
	"slices"
	"time"

	"docket/internal/errclass"
)

// probe asks the database for a known-good row at the time of the batch. If the refusal may depend on that time, it
// asks again at the present: then the time is to blame, not the table. It uses the time of the whole batch to the
// end. The items without a row may lack one because of their times.
func (c *carrier) probe(ctx context.Context) error {
	c.pulse()
	defer c.pulse()
	err := c.db.Probe(ctx, medianTime(c.batch))
	if timeMayMatter(err) {
		err = c.db.Probe(ctx, time.Time{})
	}
	return err
}

// timeMayMatter reports whether another time could change the refusal of a probe: a named constraint, or a trigger. A
// missing partition is neither: the table takes the rows once the partition exists.
func timeMayMatter(err error) bool {
	return errclass.Classify(err).Rule == errclass.Await || dataFault(err)
}

// medianTime returns the time of a typical item. The probe uses it, so that one odd timestamp in the batch does not
// choose the partition of the probe.
func medianTime(items []*item) time.Time {
	times := make([]time.Time, len(items))
	for i, it := range items {
		times[i] = it.log.Time
	}
	slices.SortFunc(times, time.Time.Compare)
	return times[len(times)/2]
}
