package ledger

import (
	"context"
	"time"
)

// Unmarked is a stored retry of an edited letter whose rows are not marked as edited yet.
type Unmarked struct {
	ID       int64 // of the retry
	LetterID string
	AuditID  int64  // of the edit
	Value    []byte // the published value
	Children []int  // indexes of its decisions that are dead letters of their own
	Tries    int
}

// RowName identifies the row of a decision: its identity, and the exact bytes that were published.
type RowName struct {
	ID   string
	Time time.Time
	Came []byte
}

// Marker marks the rows of edited letters. It trusts only the ledger, never a record's headers.
type Marker interface {
	// Unmarked lists at most n retries that are due, and returns how many there are in all.
	Unmarked(ctx context.Context, n int) (due []Unmarked, all int64, err error)
	// MarkEdited marks the rows that the retry produced: those at the place where it was published, and those that
	// were stored since from the published bytes. It returns how many it marked, and how many rows are missing or
	// could not be changed. With missing rows the retry is due again later.
	MarkEdited(ctx context.Context, id int64, rows []RowName) (marked, missing int, err error)
}
