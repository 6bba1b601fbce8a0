package pipeline

import (
	"context"
	"time"
)

// mostDays is the number of days of a batch that are probed at most.
const mostDays = 16

// lockedDays returns the decisions of days that the table refuses now, if it takes those of other days. One partition
// may be under maintenance, for example. It returns none if all days are locked or a probe fails for another reason.
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
		case classify(ctx, err).Code == lockTaken:
			locked = append(locked, of[day]...)
		default: // another failure
			return nil
		}
	}
	if len(locked) == len(open) {
		return nil
	}
	return locked
}
