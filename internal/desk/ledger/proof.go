package ledger

import (
	"context"
	"time"
)

// Proof is what the tables of the ledger hold, for a checker: letters without payload, key and headers, with all of their
// audit and all of their retries, as they were at one moment.
type Proof struct {
	Letters  []Entry
	Lines    []Audit   // of Letters and of letters that were removed, oldest first
	Sendings []Sending // of Letters
	// Rows are the letters by state, Counted what the counters say of that; of all letters, whatever was asked for.
	Rows, Counted map[State]int64
	// Cut says that there is more than was asked for.
	Cut bool
}

// Trace is how a record of a dead-letter topic can be known to the ledger.
type Trace struct {
	ID        string // its dead-letter id
	Mark      string // of the retry that it brings; empty: none
	Topic     string // where it was first read
	Partition int32
	Offset    int64
}

// Prover lets a checker look.
type Prover interface {
	// Proof is what the ledger holds of letters that were moved since a time, at most so many of them, the latest.
	// ErrNotFound: there is no ledger in this database.
	Proof(ctx context.Context, since time.Time, most int) (Proof, error)
	// Knows says of each trace whether the ledger has, or had, a letter of that id, or a retry of that mark, or one that
	// was published at that place.
	Knows(ctx context.Context, traces []Trace) ([]bool, error)
}
