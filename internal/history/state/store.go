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
	StoredSince  time.Time  // they began with decisions stored then; earlier decisions are in none
	SubjectsBy   string     // the settings by which subjects were found, as the reader writes them
	FullAt       *time.Time // when a subject last had no room, and got no state; nil: all had
	States       int64      // rows
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
}

// MostFlips and MostStates limit one answer.
const (
	MostFlips  = 1000
	MostStates = 1000
)

// Store reads states and flips. Its errors are safe to show. They are [ErrNone] if there are none.
type Store interface {
	// States returns the states of a subject in the order of their paths, at most limit. paths are as in [FlipQuery].
	States(ctx context.Context, subject string, paths []string, limit int) ([]State, Mark, error)
	// Flips returns flips in the order of their numbers, or backward.
	Flips(ctx context.Context, q FlipQuery) ([]Flip, Mark, error)
}
