package pipeline

import (
	"context"
	"time"

	"docket/internal/errclass"
)

// lockTaken is the code of a lock that was not had in time.
const lockTaken = "55P03"

// mostDays is for how many days of a batch the table is probed.
const mostDays = 16

// parkLocked parks the decisions of days that the table does not take just now while it takes those of others, as where
// one partition is under maintenance; it says whether there are any. No attempt is spent: the table is not well for them.
func (c *carrier) parkLocked(ctx context.Context, open []*item, v errclass.Verdict) bool {
	var days []time.Time
	of := map[time.Time][]*item{}
	for _, it := range open {
		day := it.log.Time.UTC().Truncate(24 * time.Hour)
		if of[day] == nil {
			days = append(days, day)
		}
		of[day] = append(of[day], it)
	}
	if len(days) < 2 || len(days) > mostDays {
		return false
	}
	var locked []*item
	for _, day := range days {
		c.takeTurn(ctx)
		c.pulse()
		err := c.db.Probe(ctx, middle(of[day]))
		c.pulse()
		switch {
		case err == nil:
		case judged(ctx, err).Code == lockTaken:
			locked = append(locked, of[day]...)
		default: // something else is wrong, too
			return false
		}
	}
	if len(locked) == len(open) {
		return false
	}
	c.postpone(v, locked...)
	return len(locked) > 0
}
