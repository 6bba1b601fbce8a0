package state

import (
	"context"
	"errors"
	"time"
)

// ErrNone says that no desk keeps states: DOCKET_STATES was never true, or nothing was followed yet.
var ErrNone = errors.New("there are no states: no desk keeps them")

// Mark says what the states have.
type Mark struct {
	StoredBefore time.Time  // all that was stored before is in them
	StoredSince  time.Time  // they began with decisions stored then; earlier decisions are in none. Of flips: or earlier ones were removed
	SubjectsBy   string     // the settings by which subjects were found, as the reader writes them
	FullAt       *time.Time // when a subject last had no room, and got no state; nil: all had
	States       int64      // rows
	// TrimmedBefore is when the latest of the removed states may have been seen; nil: none was removed.
	TrimmedBefore *time.Time

	// Shards are those that are in the answer; nil: there is one database alone.
	Shards []string
	// Places are where the next page of flips begins in each shard, to be used as [FlipQuery.Places].
	Places Places
	// Newest are the newest flips of each shard that a question backward saw. To follow new ones from there, use them as
	// [FlipQuery.Places].
	Newest Places
}

// FlipQuery chooses flips. Fields are joined by and.
type FlipQuery struct {
	After    int64     // only flips with a higher number
	Before   int64     // only flips with a lower number; 0: no limit
	Since    time.Time // only flips of decisions from then on; zero: no limit
	Subject  string    // empty: all
	Paths    []string  // whole, or all below one if it ends in "/*"; empty: all
	Limit    int       // 1 to MostFlips
	Backward bool      // the newest first
	// Places takes the place of After and Before where there are shards; nil: all flips.
	Places Places
}

// Places are numbers of flips by shard, as each shard numbers its own.
type Places map[string]int64

// FromNow is the place of a shard whose newest flip is not known yet. Its flips are shown from its first answer on.
const FromNow = -1

// Next is the query of the page behind flips, which q found.
func (q FlipQuery) Next(found []Flip, m Mark) FlipQuery {
	switch {
	case m.Places != nil:
		q.Places = m.Places
	case len(found) == 0:
	case q.Backward:
		q.Before = found[len(found)-1].ID
	default:
		q.After = found[len(found)-1].ID
	}
	return q
}

// MostFlips and MostStates limit one answer.
const (
	MostFlips  = 1000
	MostStates = 1000
)

// Revisions reads the counts of revisions. A [Store] may be one.
type Revisions interface {
	// Revisions returns the counts of revisions, those seen last first, at most limit. paths are as in [FlipQuery].
	Revisions(ctx context.Context, paths []string, limit int) ([]Rate, Mark, error)
}

// Store reads states and flips. Its errors are safe to show. They are [ErrNone] if there are none.
type Store interface {
	// States returns the states of a subject in the order of their paths, at most limit. paths are as in [FlipQuery].
	States(ctx context.Context, subject string, paths []string, limit int) ([]State, Mark, error)
	// Flips returns flips in the order of their numbers, or backward.
	Flips(ctx context.Context, q FlipQuery) ([]Flip, Mark, error)
}
