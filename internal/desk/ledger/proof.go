package ledger

import (
	"context"
	"time"
)

// Proof has the ledger's tables for a checker, as of one moment: letters without payload, key and headers, all of
// their audit and all of their retries.
type Proof struct {
	Letters  []Entry
	Lines    []Audit   // of Letters and of removed letters, oldest first
	Sendings []Sending // of Letters
	// Rows counts all letters by state, and Counted is the sum of the counters, whatever the request.
	Rows, Counted map[State]int64
	// Cut says that there are more letters than the request allowed.
	Cut bool
}

// Trace identifies a record of a dead-letter topic for the ledger.
type Trace struct {
	ID        string // its dead-letter id
	Mark      string // of its retry; empty: none
	Topic     string // the topic where it was first read
	Partition int32
	Offset    int64
}

// Prover reads the ledger for a checker.
type Prover interface {
	// Proof returns the letters that were moved since a time, the latest ones, at most most of them. ErrNotFound:
	// this database has no ledger.
	Proof(ctx context.Context, since time.Time, most int) (Proof, error)
	// Knows reports for each trace whether the ledger knows it: by a letter with that id, even a removed one, by a
	// retry with that mark, or by one that was published at that place.
	Knows(ctx context.Context, traces []Trace) ([]bool, error)
}
