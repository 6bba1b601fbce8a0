package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Version tells one value of a letter from another. The empty one is none.
type Version string

// noValue is the version of a letter without a value.
const noValue Version = "none"

// VersionOf returns the version of a value: its SHA-256 in hex.
func VersionOf(value []byte) Version {
	if value == nil {
		return noValue
	}
	sum := sha256.Sum256(value)
	return VersionOfHash(sum[:])
}

// VersionOfHash returns the version of the value that has this SHA-256; nil: of no value.
func VersionOfHash(sum []byte) Version {
	if sum == nil {
		return noValue
	}
	return Version(hex.EncodeToString(sum))
}

// EditedError says that a letter has another value than the editor saw. Nothing was changed.
type EditedError struct{ ID string }

func (e *EditedError) Error() string {
	return fmt.Sprintf("somebody edited the payload of dead letter %.12s meanwhile", e.ID)
}

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
