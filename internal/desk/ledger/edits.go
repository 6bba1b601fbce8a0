package ledger

import (
	"context"
	"time"
)

// Unmarked is a retry of an edited letter that is stored and whose rows do not say yet that they were edited.
type Unmarked struct {
	ID       int64 // of the retry
	LetterID string
	AuditID  int64  // of the edit
	Value    []byte // that was published
	Children []int  // places of decisions of it that are dead letters of their own
	Tries    int
}

// RowName is a decision whose row is looked for: its identity, and the exact bytes that were published.
type RowName struct {
	ID   string
	Time time.Time
	Came []byte
}

// Marker marks the rows of edited letters. The ledger vouches for them alone: nothing that a record carries is asked.
type Marker interface {
	// Unmarked lists at most n that are due, and says how many there are in all.
	Unmarked(ctx context.Context, n int) (due []Unmarked, all int64, err error)
	// MarkEdited marks those of rows that the retry produced: the rows at the place where it was published, and those that were stored
	// since of bytes that were published. It says how many it marked, and of how many there is no row or the row was not to be
	// changed: then it is due again later.
	MarkEdited(ctx context.Context, id int64, rows []RowName) (marked, missing int, err error)
}
