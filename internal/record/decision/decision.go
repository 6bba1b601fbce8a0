package decision

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"
)

// Reason says why a decision or a whole record was refused. Its text is the x-failure-code and a metric label.
type Reason string

// All the reasons there are.
const (
	Empty        Reason = "empty"         // a null or blank value, or an array without elements
	Syntax       Reason = "syntax"        // not JSON, not UTF-8, broken gzip, or nested deeper than 10,000
	DuplicateKey Reason = "duplicate_key" // the same name twice at the top level of a decision
	MissingField Reason = "missing_field" // no decision_id (or an empty one) or no timestamp
	WrongType    Reason = "wrong_type"    // not an object, or a field that we read is not what OPA writes there
	OutOfRange   Reason = "out_of_range"  // an id or timestamp that Postgres cannot hold
	TooLarge     Reason = "too_large"     // more bytes than allowed, counted after gunzip
)

// Refusal is the error of a decision or a record that is not stored. It never holds anything of the payload.
type Refusal struct {
	Reason Reason
	// Field is the top-level field that is to blame, one of the few that this package reads, or empty.
	Field string
	// Offset is where the fault was seen, in bytes: from the start of Part.Value for a decision, from the start of the
	// value after gunzip for a whole record. It is 0 where there is no one place, as for a missing field.
	Offset int
}

// Error tells reason, field and place in our own words.
func (r *Refusal) Error() string {
	if r.Field == "" {
		return fmt.Sprintf("decision refused: %s at byte %d", r.Reason, r.Offset)
	}
	return fmt.Sprintf("decision refused: %s in %s at byte %d", r.Reason, r.Field, r.Offset)
}

// Log is one decision log, as far as it has columns of its own. Strings and byte slices alias the record's
// value, or the buffer that this was gunzipped into; a string that was written with escapes is a copy.
type Log struct {
	// ID is decision_id, never empty.
	ID string
	// Time is timestamp in UTC, cut (not rounded) to microseconds. The years are 0000 to 9999 as written; an offset
	// can carry the instant a day beyond either end, which timestamptz holds as well.
	Time time.Time
	// Path is path; Service its first segment that is not empty, invalid where there is none ("" or "/").
	Path, Service sql.Null[string]
	// RequestedBy is requested_by.
	RequestedBy sql.Null[string]
	// OPAID and OPAVersion are labels.id and labels.version where these are strings.
	OPAID, OPAVersion sql.Null[string]
	// Allowed is result where that is a boolean, else result.allow, else result.allowed where boolean.
	Allowed sql.Null[bool]
	// ReqID is req_id, invalid where it is beyond 64 bits.
	ReqID sql.Null[int64]
	// Labels and Bundles are the objects' exact bytes, nil where absent or null.
	Labels, Bundles []byte
	// Raw is the whole decision as it was written, without the white space around it; where Unfaithful is set, its twin.
	Raw []byte
	// Unfaithful is nil where Postgres can hold the decision as it was written.
	Unfaithful *Unfaithful
	// Pieces are Raw in another order, where that spares Postgres work: put together they are the same JSON with the
	// members of its objects as jsonb keeps them, which it sorts itself where they come otherwise. None: Raw is as good.
	// Unlike the rest they are in the Decoder's memory, for which see [Decoder.Begin].
	Pieces []Piece

	sum   [sha256.Size]byte
	sumOf *byte // the start of the bytes that sum is of; nil where there is none
}

// Part is one decision of a record: either Log is whole and Err is nil, or Err says why not and Log is zero.
type Part struct {
	// Index is the place inside the record, counted from 0; blank lines do not count.
	Index int
	// Value is the decision's exact bytes, without surrounding white space or separator. It aliases the record's
	// value, or the buffer that this was gunzipped into.
	Value []byte
	Log   Log
	Err   *Refusal
}

// Record is what one Kafka record carried: at least one decision.
type Record struct {
	Parts []Part // those that were asked for
	Count int    // of all decisions
	// Plain is the value, or what it was gunzipped into.
	Plain []byte
	// Sole says that there is one decision only, so that the record's original value stands for it.
	Sole bool
	// Inflated is how many bytes the value was gunzipped into, which live beside it; 0 where it was plain.
	Inflated int
}
