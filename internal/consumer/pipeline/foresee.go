package pipeline

import (
	"context"
	"slices"

	"docket/internal/errclass"
)

// What a CHECK refuses can be foreseen: the table is asked which rows of a batch that would be. These are set aside, the
// others are written as if there were no more, and then each that was set aside is asked about alone, twice. What is
// foreseen only says where to look: a wrong guess costs an ask, and whatever does not go as foreseen leaves the items
// as they were, to go the ordinary way.

// lookAhead sets aside, before anything is written, what the constraints that refused rows of the last batches would
// refuse of this one. Where that is most of it the probe has to speak first, so nothing is.
func (c *carrier) lookAhead(ctx context.Context, items []*item) {
	for _, name := range c.foresight.likely() {
		open := c.free(homeless(items))
		suspects, err := c.foresee(ctx, open, name)
		switch {
		case err != nil: // the write that comes next finds out what is wrong
			c.foresight.forget(name)
			return
		case len(suspects) == 0:
			c.foresight.forget(name)
		case len(suspects) <= len(open)/2:
			c.setAside(suspects)
		default: // looked for once more, when the probe spoke
			c.foreseen = slices.DeleteFunc(c.foreseen, func(n string) bool { return n == name })
		}
	}
}

// foreseeable reports whether an error names a CHECK that the table was not asked about for this batch.
func (c *carrier) foreseeable(open []*item, err error) bool {
	name := checkViolated(err)
	return name != "" && len(c.free(open)) >= 2 && !slices.Contains(c.foreseen, name)
}

// foresaw looks, after a write failed and the probe passed, for all the items of a batch that fail as this one did, and
// sets them aside. It reports whether there are any.
func (c *carrier) foresaw(ctx context.Context, open []*item, err error) bool {
	suspects, err := c.foresee(ctx, c.free(open), checkViolated(err))
	c.setAside(suspects)
	return err == nil && len(suspects) > 0
}

// foresee gives the items that a constraint would refuse, but for those of which there is another of the same identity:
// of these the earlier is to have the row, so they go in order.
func (c *carrier) foresee(ctx context.Context, open []*item, name string) ([]*item, error) {
	if len(open) == 0 {
		return nil, nil
	}
	c.foreseen = append(c.foreseen, name)
	c.takeTurn(ctx)
	c.pulse()
	places, err := c.db.Foresee(ctx, c.desk.rowsOf(open), name)
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
	return single(suspects, open), nil
}

// single are those of some items that have no other of the same identity among all.
func single(some, all []*item) []*item {
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

func (c *carrier) setAside(items []*item) {
	for _, it := range items {
		it.aside = true
	}
	c.aside = append(c.aside, items...)
}

// free are the items that are not set aside.
func (c *carrier) free(items []*item) []*item {
	if len(c.aside) == 0 {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.aside })
}
