package pipeline

import (
	"context"
	"time"
)

// mostDays is for how many days of a batch the table is probed.
const mostDays = 16

// lockedDays are the decisions of days that the table does not take just now while it takes those of others, as where
// one partition is under maintenance. There are none where all days are locked or something else is wrong, too.
func (c *carrier) lockedDays(ctx context.Context, open []*item) []*item {
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
		return nil
	}
	var locked []*item
	for _, day := range days {
		c.awaitTurn(ctx)
		c.pulse()
		err := c.db.Probe(ctx, medianTime(of[day]))
		c.pulse()
		switch {
		case err == nil:
		case verdictOn(ctx, err).Code == lockTaken:
			locked = append(locked, of[day]...)
		default: // something else is wrong, too
			return nil
		}
	}
	if len(locked) == len(open) {
		return nil
	}
	return locked
}
