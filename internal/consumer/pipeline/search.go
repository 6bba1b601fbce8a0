package pipeline

import (
	"context"

	"docket/internal/bisect"
	"docket/internal/errclass"
)

// findings are the result of a search for bad records.
type findings struct {
	facts    facts // for the next decision
	probe    error // error of the probe that ended the search
	suspects []bisect.Suspect[*item]
	ahead    waitedFor
}

// isolate searches the failed items for the records to blame. The good ones get their rows during the search and keep
// them.
func (c *carrier) isolate(ctx context.Context, failed []*item, first error) findings {
	s := search{carrier: c, vouched: map[fault]bool{faultOf(errclass.Classify(first), first): true}, ahead: waitedFor{}, before: first}
	answer := func(err error) bisect.Answer { return s.answer(ctx, err) }
	found := bisect.Isolate(ctx, failed, first, s.ask, answer, hintedRow)
	c.observer.Bisected(found.Asked + found.Confirmed)

	end := findings{probe: s.refused, suspects: found.Suspects, ahead: s.ahead}
	switch {
	case ctx.Err() != nil || found.Err != nil:
		end.facts = c.factsOf(ctx, searchFailed, found.Err)
		if s.refused != nil {
			end.facts.probedWith(ctx, s.refused)
		}
	case len(found.Suspects) == 0:
		end.facts = facts{of: searchEnded, clean: true}
	default:
		end.facts = facts{of: searchEnded, failure: errclass.Classify(found.Suspects[0].Err)}
	}
	return end
}

// search looks for bad records.
type search struct {
	*carrier
	vouched map[fault]bool // kinds of failure for which the table took a good row
	refused error          // error of the probe that ended the search
	ahead   waitedFor
	before  error // result of the write before
}

// ask writes a part. again says that the part is one item, which has just failed alone.
func (s *search) ask(ctx context.Context, part []*item, again bool) error {
	err := s.once(ctx, part, again)
	// The confirmation must repeat the item's first failure. After a failure of another kind, or one that blames no record,
	// this one is the first. Then a probe comes before the next write, as it does between any two failures: it shows
	// whether the database is to blame.
	first := !mayBlame(s.before) || dataFault(err) != dataFault(s.before)
	if again && ctx.Err() == nil && mayBlame(err) && first && s.answer(ctx, err) == bisect.Divide {
		err = s.once(ctx, part, again) // confirm it
	}
	if again && err != nil {
		s.ahead.add(part[0], err)
	}
	s.before = err
	return err
}

// once writes the items of a part that wait for no other. A replay keeps no pauses: they are between its attempts.
func (s *search) once(ctx context.Context, part []*item, fresh bool) error {
	part = s.ahead.independent(homeless(part))
	if s.cfg.Replay && len(part) > 0 {
		return s.write(ctx, part, fresh)
	}
	return s.writeAndRetry(ctx, searchFailed, part, fresh)
}

// answer tells the search whether to continue after an error. It continues only while the database takes a good row.
// Each kind of failure that is new in this search needs a new probe.
func (s *search) answer(ctx context.Context, err error) bisect.Answer {
	if s.refused != nil { // the search has ended
		return bisect.End
	}
	f := s.factsOf(ctx, searchFailed, err)
	kind := faultOf(f.failure, err)
	f.vouched = s.vouched[kind]
	for {
		switch s.decide(f).then {
		case askProbe:
			s.refused = s.probe(ctx)
			f.probedWith(ctx, s.refused)
		case isolate:
			s.vouched[kind] = true
			return bisect.Divide
		default:
			return bisect.End
		}
	}
}

// fault is the kind of a failure. A probe vouches for one kind.
type fault struct{ code, column, constraint string }

func faultOf(v errclass.Classification, err error) fault {
	_, column, constraint := place(err)
	return fault{v.Code, column, constraint}
}
