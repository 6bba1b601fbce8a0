package decision

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"
)

// Reason says why a decision or a whole record was refused. Its text is the x-failure-code and a metric label.
type Reason string

// All reasons.
const (
	Empty        Reason = "empty"         // a null or blank value, or an array without elements
	Syntax       Reason = "syntax"        // not JSON, not UTF-8, broken gzip, or nested deeper than 10,000
	DuplicateKey Reason = "duplicate_key" // the same name twice at the top level of a decision
	MissingField Reason = "missing_field" // no decision_id (or an empty one) or no timestamp
	WrongType    Reason = "wrong_type"    // not an object, or a field that Docket reads has another type than OPA writes
	OutOfRange   Reason = "out_of_range"  // an id or timestamp that Postgres cannot hold
	TooLarge     Reason = "too_large"     // more bytes than allowed, counted after gunzip
)

// IsReason reports whether r is one of the reasons.
func IsReason(r Reason) bool {
	switch r {
	case Empty, Syntax, DuplicateKey, MissingField, WrongType, OutOfRange, TooLarge:
		return true
	}
	return false
}

// Refusal is the error of a decision or a record that is not stored. It never contains payload.
type Refusal struct {
	Reason Reason
	// Field is the top-level field to blame, one of the few that this package reads, or empty.
	Field string
	// Offset is the place of the fault in bytes: from the start of Part.Value for a decision, from the start of the
	// inflated value for a whole record. It is 0 for a fault without a place, such as a missing field.
	Offset int
}

// Error names reason, field and place, without payload.
func (r *Refusal) Error() string {
	if r.Field == "" {
		return fmt.Sprintf("decision refused: %s at byte %d", r.Reason, r.Offset)
	}
	return fmt.Sprintf("decision refused: %s in %s at byte %d", r.Reason, r.Field, r.Offset)
}

// Log is one decision log with the fields that have columns. Strings and byte slices share the record's value, or the
// buffer that it was gunzipped into. A string that was written with escapes is a copy.
type Log struct {
	// ID is decision_id, never empty.
	ID string
	// Time is timestamp in UTC, cut (not rounded) to microseconds. The years are 0000 to 9999 as written. An offset
	// can move the time a day beyond either end, which timestamptz holds too.
	Time time.Time
	// Path is path. Service is its first segment that is not empty, invalid if there is none ("" or "/").
	Path, Service sql.Null[string]
	// RequestedBy is requested_by.
	RequestedBy sql.Null[string]
	// OPAID and OPAVersion are labels.id and labels.version, if these are strings.
	OPAID, OPAVersion sql.Null[string]
	// Allowed is result if that is a boolean, else result.allow, else result.allowed if that is a boolean.
	Allowed sql.Null[bool]
	// ReqID is req_id, invalid if it needs more than 64 bits.
	ReqID sql.Null[int64]
	// Labels and Bundles are the objects' exact bytes, nil if absent or null.
	Labels, Bundles []byte
	// Raw is the whole decision as written, without the white space around it. If Unfaithful is set, it is the twin.
	Raw []byte
	// Unfaithful is nil if Postgres can hold the decision as written.
	Unfaithful *Unfaithful
	// Pieces are Raw in another order, if that saves Postgres work. Together they are the same JSON with the members
	// of its objects in jsonb's order, so that Postgres need not sort them. Without pieces Raw is used. Unlike the
	// other fields they are in the Decoder's memory, see [Decoder.Begin].
	Pieces []Piece

	sum   [sha256.Size]byte
	sumOf *byte // start of the bytes that sum was computed from; nil: none
}

// Part is one decision of a record. Either Log is whole and Err is nil, or Err is the refusal and Log is zero.
type Part struct {
	// Index is the position inside the record, from 0; blank lines do not count.
	Index int
	// Value is the decision's exact bytes, without surrounding white space or separator. It shares the record's
	// value, or the buffer that it was gunzipped into.
	Value []byte
	Log   Log
	Err   *Refusal
}

// Record is the content of one Kafka record: at least one decision.
type Record struct {
	Parts []Part // those that were asked for
	Count int    // of all decisions
	// Plain is the value, gunzipped if it was gzip.
	Plain []byte
	// Sole says that there is only one decision. It is forwarded as the record's original value.
	Sole bool
	// Inflated is the number of bytes that the value was gunzipped into, in separate memory; 0 if it was plain.
	Inflated int
}
