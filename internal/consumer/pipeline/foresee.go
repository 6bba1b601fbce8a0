package pipeline

import (
	"context"
	"slices"

	"docket/internal/errclass"
)

// The table can tell which rows of a batch a CHECK would refuse. These items are suspected. The others are written
// first. Then the table is asked about each suspected item alone, twice. The forecast is only a hint: a wrong one
// costs a question, and an item that is not refused as foreseen is written as usual.

// foreseeLikely suspects, before the first write, the items that the constraints of the last batches would refuse. If
// these are most of the batch, a probe has to pass first, so none is suspected yet.
func (c *carrier) foreseeLikely(ctx context.Context, items []*item) {
	for _, name := range c.foresight.likely() {
		open := c.unsuspected(homeless(items))
		suspects, err := c.foresee(ctx, open, name)
		switch {
		case err != nil: // the next write finds the cause
			c.foresight.forget(name)
			return
		case len(suspects) == 0:
			c.foresight.forget(name)
		case len(suspects) <= len(open)/2:
			c.suspect(suspects)
		default: // it is asked again once a probe passed
			c.foreseen = slices.DeleteFunc(c.foreseen, func(n string) bool { return n == name })
		}
	}
}

// foreseeable reports whether an error names a CHECK that the table was not yet asked about for this batch.
func (c *carrier) foreseeable(open []*item, err error) bool {
	name := checkViolated(err)
	return name != "" && len(c.unsuspected(open)) >= 2 && !slices.Contains(c.foreseen, name)
}

// suspectForeseen asks which items of the batch the violated CHECK refuses, and suspects them. It is called after a
// write failed and the probe passed. It reports whether there are any.
func (c *carrier) suspectForeseen(ctx context.Context, open []*item, err error) bool {
	suspects, err := c.foresee(ctx, c.unsuspected(open), checkViolated(err))
	c.suspect(suspects)
	return err == nil && len(suspects) > 0
}

// foresee returns the items that a constraint would refuse, without those that share their identity with another
// item. Of two such items the earlier must get the row, so they are written in order.
func (c *carrier) foresee(ctx context.Context, open []*item, name string) ([]*item, error) {
	if len(open) == 0 {
		return nil, nil
	}
	c.foreseen = append(c.foreseen, name)
	c.awaitTurn(ctx)
	c.pulse()
	places, err := c.db.Foresee(ctx, c.scratch.rowsOf(open), name)
	c.pulse()
	if err != nil {
		c.on(c.log.Debug()).Str(keyCode, errclass.Classify(err).Code).Str(keyNamed, name).Msg("constraint violations not predicted")
		return nil, err
	}
	var suspects []*item
	for _, at := range places {
		if at >= 0 && at < len(open) {
			suspects = append(suspects, open[at])
		}
	}
	return withoutTwins(suspects, open), nil
}

// withoutTwins returns the items of some whose identity is unique among all.
func withoutTwins(some, all []*item) []*item {
	count := make(map[identity]int, len(some))
	for _, it := range some {
		count[it.identity()] = 0
	}
	for _, it := range all {
		if n, ok := count[it.identity()]; ok {
			count[it.identity()] = n + 1
		}
	}
	return slices.DeleteFunc(some, func(it *item) bool { return count[it.identity()] > 1 })
}

func (c *carrier) suspect(items []*item) {
	for _, it := range items {
		it.suspected = true
	}
	c.suspected = append(c.suspected, items...)
}

// unsuspected returns the items that are not suspected.
func (c *carrier) unsuspected(items []*item) []*item {
	if len(c.suspected) == 0 {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.suspected })
}
