package readertest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"docket/internal/history/state"
)

// States has states and flips in memory. The zero value has none: each question is answered with [state.ErrNone].
type States struct {
	mu    sync.Mutex
	All   []state.State // in the order of their keys
	Noted []state.Flip
	Rates []state.Rate // in the order of an answer
	Mark  state.Mark
	Err   error
}

// States implements [state.Store].
func (s *States) States(_ context.Context, subject string, paths []string, limit int) (out []state.State, mark state.Mark, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fault(); err != nil {
		return nil, mark, err
	}
	for _, one := range s.All {
		if one.Subject == subject && among(one.Path, paths) && len(out) < limit {
			out = append(out, one)
		}
	}
	return out, s.Mark, nil
}

// Flips implements [state.Store].
func (s *States) Flips(_ context.Context, q state.FlipQuery) (out []state.Flip, mark state.Mark, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fault(); err != nil {
		return nil, mark, err
	}
	for _, f := range s.Noted {
		if f.ID > q.After && (q.Before == 0 || f.ID < q.Before) && !f.Time.Before(q.Since) && (q.Subject == "" || f.Subject == q.Subject) && among(f.Path, q.Paths) {
			out = append(out, f)
		}
	}
	if q.Backward {
		slices.Reverse(out)
	}
	return out[:min(len(out), q.Limit)], s.Mark, nil
}

// Note adds flips.
func (s *States) Note(flips ...state.Flip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Noted = append(s.Noted, flips...)
}

// Fail makes each question fail from now on; nil: not any more.
func (s *States) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Err = err
}

func (s *States) fault() error {
	if s.Err == nil && s.Mark.StoredBefore.IsZero() {
		return state.ErrNone
	}
	return s.Err
}

func among(path string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(of string) bool {
		below, is := strings.CutSuffix(of, "*")
		return of == path || is && strings.HasPrefix(path, below)
	})
}

// Revisions implements [state.Revisions].
func (s *States) Revisions(_ context.Context, paths []string, limit int) (out []state.Rate, mark state.Mark, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fault(); err != nil {
		return nil, mark, err
	}
	for _, one := range s.Rates {
		if among(one.Path, paths) && len(out) < limit {
			out = append(out, one)
		}
	}
	return out, s.Mark, nil
}
