package worker

import (
	"context"
	"time"

	"github.com/rs/zerolog"
)

// Decisions keeps counts of stored decisions.
type Decisions interface {
	// Count adds the decisions that were stored since the last time, and returns how many. It may leave some for the
	// next time. Of several desks one does it.
	Count(ctx context.Context) (int64, error)
}

// Tally counts stored decisions regularly.
type Tally struct {
	of    Decisions
	every time.Duration
	chore chore
}

// tallyEvery is the pause between two counts.
const tallyEvery = 30 * time.Second

// NewTally makes a tally.
func NewTally(of Decisions, log zerolog.Logger) *Tally {
	return &Tally{of: of, every: tallyEvery, chore: chore{trouble: trouble{log: log, work: "counting stored decisions"}}}
}

// indexEvery is the pause between two checks whether a day that is over lacks its indexes.
const indexEvery = 10 * time.Minute

// indexed makes a func a [Decisions].
type indexed func(ctx context.Context) (int64, error)

func (i indexed) Count(ctx context.Context) (int64, error) { return i(ctx) }

// NewIndexing builds missing indexes of days that are over, regularly.
func NewIndexing(index func(ctx context.Context) (int64, error), log zerolog.Logger) *Tally {
	return &Tally{of: indexed(index), every: indexEvery, chore: chore{trouble: trouble{log: log, work: "indexing the days that are over"}}}
}

// Run works until ctx ends, and returns nil then.
func (t *Tally) Run(ctx context.Context) error {
	for {
		pause := t.every
		_, err := t.of.Count(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it failed because it was to stop
		}
		if err == nil {
			t.chore.succeeded()
		} else {
			t.chore.failed(ctx, err)
			pause = t.chore.pause(t.every)
		}
		if idle(ctx, pause) {
			return nil
		}
	}
}
