package pipeline

import (
	"context"
	"time"

	"docket/internal/errclass"
)

// hours are those in which the table took no good row. A lock can take seconds to fail, and hundreds of items can share
// it. So each such hour costs one probe.
type hours map[time.Time]bool

// route sends an item that failed alone, twice, to its topic. refused is shared by the items of one search.
func (c *carrier) route(ctx context.Context, it *item, err error, refused hours) {
	f := facts{of: recordFailed, failure: errclass.Classify(err), probe: probePassed, replay: c.cfg.Replay, parked: it.env.Parked}
	for {
		switch r := c.decide(f); r.then {
		case askOwnTime:
			hour := it.log.Time.UTC().Truncate(time.Hour)
			if !refused[hour] {
				c.pulse()
				refused[hour] = c.db.Probe(ctx, it.log.Time) != nil
				c.pulse()
			}
			f.ownTime = answerOf(!refused[hour])
			continue
		case postpone:
			c.postpone(f.failure, it)
		case park:
			c.park(f.failure, it)
		default:
			v := f.failure
			if r.code != "" {
				v, _ = errclass.Lookup(r.code)
			}
			it.deadLetter(ofTheRecord(v, err))
		}
		return
	}
}

// park sends items to the parking topic. An item that spent its last attempt goes to the replayer's dead-letter
// topic.
func (c *carrier) park(v errclass.Classification, items ...*item) {
	cause := ofTheMoment(v)
	for _, it := range items {
		if it.env.Parked && it.env.Attempt+1 >= c.cfg.MaxAttempts {
			it.exhaust(cause.Code, it.env.Attempt+1)
			continue
		}
		it.park(cause)
	}
}

// postpone sends items to the parking topic without spending an attempt.
func (c *carrier) postpone(v errclass.Classification, items ...*item) {
	cause := ofTheMoment(v)
	for _, it := range items {
		it.postpone(cause)
	}
}
