package pipeline

import (
	"context"

	"docket/internal/bisect"
	"docket/internal/errclass"
)

// judge decides what becomes of a batch of which a part could not be written as a whole. nil means: look again at what
// still wants a row.
func (c *carrier) judge(ctx context.Context, open, failed []*item, err error) error {
	v := judged(ctx, err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case v.Code == lockTaken && !c.leaving() && c.parkLocked(ctx, open, v):
		return nil
	case c.worldly(v) && !c.provable(v):
		return c.parkAll(ctx, open, v)
	}
	// The probe speaks before anybody is blamed: a table that refuses everything is not a pile of bad records, and
	// what fails while the table takes a good row is one of these records.
	if perr := c.probe(ctx); perr != nil {
		if v.Rule == errclass.RetryBisect && !c.cfg.Replay && c.worldly(judged(ctx, perr)) {
			return c.parkAll(ctx, open, v)
		}
		return c.hold(ctx, blame(v, perr))
	}
	c.proved = true
	if c.foresaw(ctx, open, err) {
		return nil
	}
	return c.isolate(ctx, open, failed, err)
}

// worldly says that a verdict blames the moment, not the records and not the set-up.
func (c *carrier) worldly(v errclass.Verdict) bool {
	return v.Class == errclass.Transient || v.Class == errclass.Unknown
}

// provable says that a failure of the moment is to be looked into further when the database answers the probe.
// A replay always does: an attempt counts only against a database that is well, and only for records that fail alone.
func (c *carrier) provable(v errclass.Verdict) bool {
	return c.cfg.Replay || v.Rule == errclass.RetryBisect
}

// parkAll sends a whole batch to the parking topic, or holds it where enough of them went there in a row: an outage is
// waited out, not copied. A batch that is being given up is not parked on that account.
func (c *carrier) parkAll(ctx context.Context, open []*item, v errclass.Verdict) error {
	if c.leaving() {
		return errLeft
	}
	if !c.parked.admit() {
		return c.hold(ctx, Hold{Reason: ReasonDatabaseAway, Code: v.Code, Hint: words(v)})
	}
	c.park(v, open...)
	return nil
}

// park sends items to the parking topic, each that has spent its last attempt to its dead-letter topic.
func (c *carrier) park(v errclass.Verdict, items ...*item) {
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
func (c *carrier) postpone(v errclass.Verdict, items ...*item) {
	cause := ofTheMoment(v)
	for _, it := range items {
		it.postpone(cause)
	}
}

// isolate finds the records that are to blame among those that failed. The good ones get their rows on the way and keep
// them.
func (c *carrier) isolate(ctx context.Context, open, failed []*item, first error) error {
	proof := proof{carrier: c, seen: map[suspicion]bool{suspect(errclass.Classify(first), first): true}}
	ahead := forerunners{}
	once := func(ctx context.Context, part []*item, again bool) error {
		part = ahead.free(wanting(part))
		if c.cfg.Replay && len(part) > 0 {
			return c.write(ctx, part, again) // the pauses of a replay are those of its attempts
		}
		return c.tries(ctx, part, again)
	}
	before := first // a confirmation comes right after the item's first failure alone
	ask := func(ctx context.Context, part []*item, again bool) error {
		err := once(ctx, part, again)
		if again && ctx.Err() == nil && blaming(err) && dataFault(err) != dataFault(before) {
			err = once(ctx, part, again) // blamed once: what came before was a failure of another sort
		}
		if again && err != nil {
			ahead.add(part[0], err)
		}
		before = err
		return err
	}
	answer := func(err error) bisect.Answer { return proof.answer(ctx, err) }
	found := bisect.Isolate(ctx, failed, first, ask, answer, stumbledOver)
	c.observer.Bisected(found.Asked + found.Confirmed)

	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case proof.refused != nil:
		return c.hold(ctx, blame(errclass.Classify(found.Err), proof.refused))
	case found.Err != nil:
		// The world went away half-way: nobody is dead-lettered on the word of a dying connection.
		return c.parkAll(ctx, wanting(open), judged(ctx, found.Err))
	case len(found.Suspects) == 0:
		return nil
	}
	// Once more, now that the accused are known: the table must still take a good row.
	if perr := c.probe(ctx); perr != nil {
		return c.hold(ctx, blame(errclass.Classify(found.Suspects[0].Err), perr))
	}
	for _, s := range found.Suspects {
		if v := errclass.Classify(s.Err); v.Code == lockTaken && c.db.Probe(ctx, s.Item.log.Time) != nil {
			c.postpone(v, s.Item)
			continue
		}
		c.sentence(s.Item, s.Err)
	}
	ahead.parkBehind(wanting(open))
	return nil
}

// sentence sends away an item that failed alone, twice, while the table took a good row.
func (c *carrier) sentence(it *item, err error) {
	v := errclass.Classify(err)
	switch {
	case v.Rule == errclass.Await:
		c.postpone(v, it)
		return
	case v.Rule == errclass.RetryBisect:
		v, _ = errclass.Lookup("too_slow")
	case v.Rule == errclass.RetryProbeBisect:
		v, _ = errclass.Lookup("internal")
	case v.Rule == errclass.ParkOnceBisect && !it.env.Parked, v.Class != errclass.Data:
		c.park(v, it)
		return
	}
	it.deadLetter(ofTheRecord(v, err))
}

// suspicion is what one probe vouches for.
type suspicion struct{ code, column, constraint string }

func suspect(v errclass.Verdict, err error) suspicion {
	_, column, constraint := place(err)
	return suspicion{v.Code, column, constraint}
}

// proof answers the bisect whether to go on after an error: only while the database takes a good row, asked anew for
// every kind of failure that was not seen before in this search.
type proof struct {
	*carrier
	seen    map[suspicion]bool
	refused error // the probe's, when it ended the search
}

func (p *proof) answer(ctx context.Context, err error) bisect.Answer {
	v := judged(ctx, err)
	if ctx.Err() != nil || p.worldly(v) && !p.provable(v) {
		return bisect.End
	}
	s := suspect(v, err)
	if v.Class == errclass.Data && p.seen[s] {
		return bisect.Divide
	}
	if p.refused = p.probe(ctx); p.refused != nil {
		return bisect.End
	}
	p.seen[s] = true
	return bisect.Divide
}
