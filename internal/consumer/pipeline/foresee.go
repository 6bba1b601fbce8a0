package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"docket/internal/errclass"
)

// What a CHECK refuses can be foreseen: the table is asked which rows of a batch that would be. These are set aside, the
// others are written as if there were no more, and then each that was set aside is asked about alone, twice. What is
// foreseen only says where to look: a wrong guess costs an ask, and whatever does not go as foreseen leaves the items
// as they were, to go the ordinary way.

// mostForeseen is how many constraints are asked about before the first write of a batch.
const mostForeseen = 4

// foresight remembers which constraints refused rows of the last batches, for all partitions of a process. Its zero
// value remembers none. It is safe for concurrent use.
type foresight struct {
	mu    sync.Mutex
	names []string
}

func (f *foresight) likely() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.names)
}

func (f *foresight) remember(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.names) < mostForeseen && !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
}

func (f *foresight) forget(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = slices.DeleteFunc(f.names, func(n string) bool { return slices.Contains(names, n) })
}

// checkViolated is the constraint that an error names as a CHECK which a row violates, empty where it names none.
func checkViolated(err error) string {
	if !dataFault(err) || errclass.Classify(err).Code != "23514" {
		return ""
	}
	_, _, constraint := place(err)
	return constraint
}

// lookAhead sets aside, before anything is written, what the constraints that refused rows of the last batches would
// refuse of this one. Where that is most of it the probe has to speak first, so nothing is.
func (c *carrier) lookAhead(ctx context.Context, items []*item) {
	for _, name := range c.foresight.likely() {
		open := c.free(wanting(items))
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

// foresaw looks, after a write failed and the probe passed, for all the items of a batch that fail as this one did, and
// sets them aside. false means that there is nothing to be foreseen.
func (c *carrier) foresaw(ctx context.Context, open []*item, err error) bool {
	name := checkViolated(err)
	if open = c.free(open); name == "" || len(open) < 2 || slices.Contains(c.foreseen, name) {
		return false
	}
	suspects, err := c.foresee(ctx, open, name)
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

// accuse asks about what was set aside, now that the rest of the batch has its homes. Nobody is asked about before the
// table took a row of the batch, or a probe. Only what is refused alone, twice, and as it was foreseen, while the table
// takes a good row afterwards, is sentenced. All others want a row as before and are aside no more.
func (c *carrier) accuse(ctx context.Context) error {
	accused := wanting(c.aside)
	for _, it := range c.aside {
		it.aside = false
	}
	c.aside = nil
	if len(accused) == 0 || ctx.Err() != nil {
		return nil
	}
	if perr := c.well(ctx); perr != nil {
		if ctx.Err() != nil {
			return nil // we are stopped: nothing was found out
		}
		return c.hold(ctx, blame(errclass.Classify(perr), perr))
	}
	h := &hearing{carrier: c}
	defer func() { c.observer.Bisected(h.asked) }()
	accused, _, err := h.ask(ctx, accused, time.Time{})
	if err != nil || len(accused) == 0 {
		if err == nil { // wrong of everybody, as where a trigger mends them: the next batch is not asked about
			c.foresight.forget(c.foreseen...)
		}
		return nil // who wants a row is written, and fails in the ordinary way
	}
	accused, refused, err := h.ask(ctx, accused, middle(c.batch))
	// Where it may be only a time that the table does not take, the ordinary way asks about another.
	if unwell, ok := errors.AsType[*Unwell](err); ok && ctx.Err() == nil && !mayBeTheTime(unwell.Err) {
		return c.hold(ctx, blame(h.first, unwell.Err))
	}
	for i, it := range accused {
		c.sentence(it, refused[i])
		c.foresight.remember(checkViolated(refused[i]))
	}
	return nil
}

// well asks for a probe, unless the table took a good row since the batch is in hand.
func (c *carrier) well(ctx context.Context) error {
	if c.proved {
		return nil
	}
	err := c.probe(ctx)
	c.proved = err == nil
	return err
}

// hearing is what is asked about the accused of a batch.
type hearing struct {
	*carrier
	asked int
	first errclass.Verdict // on the first of them
}

// ask asks about items, each alone, and gives those that are refused as it was foreseen, and why. With the time of a
// probe it is the second time that they are asked about.
func (h *hearing) ask(ctx context.Context, items []*item, probe time.Time) (accused []*item, why []error, err error) {
	h.takeTurn(ctx)
	h.pulse()
	refused, err := h.db.Refusals(ctx, h.desk.rowsOf(items), probe)
	h.pulse()
	if err != nil {
		if _, unwell := errors.AsType[*Unwell](err); !unwell && ctx.Err() == nil {
			h.failed(judged(ctx, err), len(items))
		}
		return nil, nil, err
	}
	h.asked += len(items)
	for i, err := range refused {
		if err == nil {
			continue
		}
		v := judged(ctx, err)
		h.observer.StoreFailed(v)
		if name := checkViolated(err); name != "" && slices.Contains(h.foreseen, name) {
			if h.first.Code == "" {
				h.first = v
			}
			accused, why = append(accused, items[i]), append(why, err)
		}
	}
	return accused, why, nil
}
