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

// kept answers from the state where it can: if nothing came late, and the decision is one of those since its verdict
// began. Otherwise ok is false, and a search has to answer.
func (a *Around) kept(ctx context.Context, store Store, d Decision, key state.Key, q Question) (ok bool, err error) {
	states, has := store.(States)
	if !has {
		return false, nil
	}
	s, until, err := states.State(ctx, q.SubjectsBy(), key)
	if err != nil || s == nil {
		return false, nil //nolint:nilerr // a role may read decisions and no states; the search answers, or says why it cannot
	}
	self := state.Version{Time: d.Time.UTC(), ID: d.ID}
	if s.Late > 0 || s.Before == nil || s.Verdict != d.Verdict || self.Compare(s.Since) < 0 || self.Compare(s.Version) > 0 {
		return false, nil
	}
	otherwise, err := exactly(ctx, store, s.Before.Version)
	if err != nil || otherwise == nil {
		return false, err // it is archived or removed
	}
	var first *Decision
	if self != s.Since {
		if first, err = exactly(ctx, store, s.Since); err != nil || first == nil {
			return false, err
		}
	}
	a.Otherwise, a.First, a.Kept = otherwise, first, until
	return true, nil
}

// exactly returns the decision of an id and a time, or nil.
func exactly(ctx context.Context, store Store, v state.Version) (*Decision, error) {
	all, err := store.ByID(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Time.Equal(v.Time) {
			return &all[i], nil
		}
	}
	return nil, nil
}
