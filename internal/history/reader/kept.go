package reader

import (
	"context"
	"time"

	"docket/internal/history/state"
)

// States has the newest answer of each subject and path. A [Store] that is one answers since when without a search.
type States interface {
	// State returns the state of a key, and the time before which all that was stored is in it. It is nil if there is
	// none, or if the states have subjects by other settings than by, which [Question.SubjectsBy] writes.
	State(ctx context.Context, by string, key state.Key) (*state.State, time.Time, error)
}

// keptLag is how far states may be behind the clock to answer. A desk that keeps up is less than a minute behind. Late
// decisions that were stored since change the answer.
const keptLag = 5 * time.Minute

// kept answers from the state where it can. Nothing may have come late, and the decision must be one of those since its
// verdict began. The states must have the decision, and not be far behind. Otherwise ok is false, and a search has to answer.
func (a *Around) kept(ctx context.Context, store Store, d Decision, key state.Key, q Question) (ok bool, err error) {
	states, has := store.(States)
	if !has {
		return false, nil
	}
	s, until, err := states.State(ctx, q.SubjectsBy(), key)
	if err != nil || s == nil {
		return false, nil //nolint:nilerr // a role may read decisions and no states; the search answers, or says why it cannot
	}
	if !d.StoredAt.Before(until) || q.now().Sub(until) > keptLag {
		return false, nil
	}
	self := state.Version{Time: d.Time.UTC(), ID: d.ID}
	if s.Late > 0 || s.Before == nil || s.Verdict != d.Verdict || self.Compare(s.Since) < 0 || self.Compare(s.Version) > 0 {
		return false, nil
	}
	otherwise, err := a.exactly(ctx, store, s.Before.Version)
	if err != nil || otherwise == nil {
		return false, err // it is archived or removed
	}
	var first *Decision
	if self != s.Since {
		if first, err = a.exactly(ctx, store, s.Since); err != nil || first == nil {
			return false, err
		}
	}
	a.Otherwise, a.First, a.Kept = otherwise, first, until
	return true, nil
}

// exactly returns the decision of an id and a time, or nil.
func (a *Around) exactly(ctx context.Context, store Store, v state.Version) (*Decision, error) {
	all, err := store.ByID(ctx, v.ID)
	if err = a.parts.Pass(err); err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Time.Equal(v.Time) {
			return &all[i], nil
		}
	}
	return nil, nil
}
