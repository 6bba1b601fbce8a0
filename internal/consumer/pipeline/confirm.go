package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"docket/internal/errclass"
)

// confirm asks the table about the suspected items, after the rest of the batch has its homes. It asks only after the
// table took a row of the batch or a probe. An item is routed only if it was refused alone, twice, by the expected
// constraint, and the table then took a good row. All others are written as usual.
func (c *carrier) confirm(ctx context.Context) error {
	items := homeless(c.suspected)
	for _, it := range c.suspected {
		it.suspected = false
	}
	c.suspected = nil
	if len(items) == 0 {
		return nil
	}
	var (
		probe error
		why   []error // of items, in order
		q     = inquiry{carrier: c}
	)
	defer q.told()
	f := c.factsOf(ctx, checkForeseen, nil)
	if c.accepted {
		f.probe = probePassed
	}
	for {
		switch r := c.decide(f); r.then {
		case askProbe:
			probe = c.probe(ctx)
			f.probedWith(ctx, probe)
			f.failure, c.accepted = f.probed, probe == nil
			f.stopped = probe != nil && ctx.Err() != nil
		case askEach:
			again := f.predicted == yes
			at := time.Time{}
			if again {
				at = medianTime(c.batch)
			}
			var err error
			items, why, err = q.ask(ctx, items, at)
			unwell, ok := errors.AsType[*Unwell](err)
			switch {
			case err == nil && len(items) > 0:
				f.predicted, f.confirmed = yes, again
			case again && ok && ctx.Err() == nil:
				probe, f.failure = unwell.Err, q.first
				f.probedWith(ctx, probe)
				if timeMayMatter(probe) {
					f.probe = probeUntimely
				}
			default:
				f.predicted = no
			}
			if err == nil && len(items) == 0 && !again {
				c.foresight.forget(c.foreseen...) // the forecast was wrong for all of them, for example because a trigger repairs the rows
			}

		case hold:
			return c.hold(ctx, holdFor(r, f, probe))
		case judgeEach:
			refused := hours{}
			for i, it := range items {
				c.route(ctx, it, why[i], refused)
				c.foresight.remember(checkViolated(why[i]))
			}
			return nil
		default:
			return nil
		}
	}
}

// inquiry asks the table about suspected items.
type inquiry struct {
	*carrier
	began bool
	asked int
	first errclass.Classification // on the first of them
}

// told reports how many items were asked about.
func (q *inquiry) told() {
	if q.began {
		q.observer.Bisected(q.asked)
	}
}

// ask asks the table about each item alone. It returns the items that were refused by an expected constraint, with
// the errors. probe is zero in the first round. In the second it is the time of the probe that follows the questions.
func (q *inquiry) ask(ctx context.Context, items []*item, probe time.Time) (refused []*item, why []error, err error) {
	q.began = true
	q.awaitTurn(ctx)
	q.pulse()
	answers, err := q.db.Refusals(ctx, q.scratch.rowsOf(items), probe)
	q.pulse()
	if err != nil {
		if _, unwell := errors.AsType[*Unwell](err); !unwell && ctx.Err() == nil {
			q.failed(classify(ctx, err), len(items))
		}
		return nil, nil, err
	}
	q.asked += len(items)
	for i, err := range answers {
		if err == nil {
			continue
		}
		v := classify(ctx, err)
		q.observer.StoreFailed(v)
		if name := checkViolated(err); name != "" && slices.Contains(q.foreseen, name) {
			if q.first.Code == "" {
				q.first = v
			}
			refused, why = append(refused, items[i]), append(why, err)
		}
	}
	return refused, why, nil
}
