package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of a forwarded record.
const (
	OriginalTopic     = "x-original-topic"
	OriginalPartition = "x-original-partition"
	OriginalOffset    = "x-original-offset"
	OriginalIndex     = "x-original-index"
	OriginalTimestamp = "x-original-timestamp"
	FailureKind       = "x-failure-kind"
	FailureCode       = "x-failure-code"
	FailureMessage    = "x-failure-message"
	FailureTable      = "x-failure-table"
	FailureColumn     = "x-failure-column"
	FailureConstraint = "x-failure-constraint"
	FirstFailedAt     = "x-first-failed-at"
	FailedAt          = "x-failed-at"
	RetryAttempt      = "x-retry-attempt"
	NotBefore         = "x-not-before"
	DeadLetterID      = "x-dead-letter-id"
	Consumer          = "x-consumer"
	// DecisionID and DecisionTime are the identity that the value of a dead letter claims, as far as it can be read;
	// see [decision.ClaimOf].
	DecisionID   = "x-decision-id"
	DecisionTime = "x-decision-time"
	// Refused is the number of decisions in a dead letter that holds several refused ones of one upload. Its value is
	// a rest; see [decision.AppendRest].
	Refused = "x-refused-decisions"
	// Traceparent is the trace in which the record continues, like W3C's traceparent. It is written only with
	// tracing. A traceparent header of the original record stays unchanged.
	Traceparent = "x-traceparent"
)

// ours are the headers that Docket writes. Incoming headers with these names are never passed on.
var ours = map[string]bool{
	OriginalTopic: true, OriginalPartition: true, OriginalOffset: true, OriginalIndex: true, OriginalTimestamp: true,
	FailureKind: true, FailureCode: true, FailureMessage: true, FailureTable: true, FailureColumn: true, FailureConstraint: true,
	FirstFailedAt: true, FailedAt: true, RetryAttempt: true, NotBefore: true, DeadLetterID: true, Consumer: true, Traceparent: true,
	DecisionID: true, DecisionTime: true, Refused: true, Mac: true,
}

// necessary are the headers of Docket that stay on a record which the broker refuses as too large.
var necessary = map[string]bool{
	OriginalTopic: true, OriginalPartition: true, OriginalOffset: true, OriginalIndex: true,
	FailureKind: true, FailureCode: true, DeadLetterID: true, RetryAttempt: true, NotBefore: true, Refused: true,
}

// Kind is the kind of failure for which a record is forwarded.
type Kind string

// The kinds of failure.
const (
	Decode    Kind = "decode"    // the decoder refused it
	Data      Kind = "data"      // the table refused it
	Conflict  Kind = "conflict"  // the same decision is stored with another payload
	Transient Kind = "transient" // the database could not take it just now
	Exhausted Kind = "exhausted" // the last attempt failed too
	// Foreign is a dead letter whose headers of Docket are not proven; see [Keys]. Docket writes no such kind.
	Foreign Kind = "foreign"
)

// Cause is why a record is forwarded. It contains no payload and no text of the server.
type Cause struct {
	Kind                      Kind
	Code                      string // SQLSTATE, or a reason of the decoder or of Docket
	Message                   string // one line, without text of the server
	Table, Column, Constraint string // those that Postgres names
}

// Together is the cause of a dead letter that holds several refused decisions of one upload, at places from first to
// last. Its code is the most frequent one; of several the one that came first.
func Together(codes iter.Seq[string], first, last int) Cause {
	counts, n := map[string]int{}, 0
	for code := range codes {
		counts[code]++
		n++
	}
	c := Cause{Kind: Decode, Message: fmt.Sprintf("%d refused decisions of one upload, at places %d to %d of it", n, first, last)}
	for code := range codes {
		if counts[code] > counts[c.Code] {
			c.Code = code
		}
	}
	return c
}

// Limits in bytes that keep Docket's headers within 4 KiB together. Kafka limits a topic's name to 249; the others
// are numbers and times.
const (
	maxMessage = 1024
	maxName    = 256
	maxCode    = 64
	maxID      = 1024 // of a decision, escaped
)

// Sealed has the values that [Sealer.Seal] writes besides the cause.
type Sealed struct {
	Topic     string    // the destination
	Index     int       // place of the decision inside its Kafka record, NoIndex if it was never decoded
	Value     []byte    // the forwarded value, nil stays nil
	Decision  []byte    // the decision in Value, which may be compressed or have an array around it; nil: it is Value
	At        time.Time // now
	Attempt   int
	NotBefore time.Time // zero: not written
	Consumer  string    // group/instance
	Refused   int       // number of decisions if the value is a rest; 0: it is not
	// Traceparent is the trace in which the record continues; empty: not written.
	Traceparent string
}

// Seal is [Sealer.Seal] for a single record.
func (e Envelope) Seal(c Cause, s Sealed) *kgo.Record { return new(Sealer).Seal(&e, &c, s) }

// Bare returns the record with only the necessary ones of Docket's headers. It is sent when the broker refuses the
// whole.
func (k Keys) Bare(r *kgo.Record) *kgo.Record {
	bare := &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
	for _, h := range r.Headers {
		if necessary[h.Key] {
			bare.Headers = append(bare.Headers, h)
		}
	}
	k.Sign(bare)
	return bare
}

// ID returns the dead-letter id, which is the same for the same decision everywhere. It is the hex of SHA-256 over
// the origin, a zero byte and the forwarded value. The origin is topic, partition, offset and index, joined by zero
// bytes. They are decimal, and empty if there are none.
func ID(o Origin, value []byte) string {
	h := sha256.New()
	h.Write(appendPlace(nil, o))
	h.Write(value)
	return hex.EncodeToString(h.Sum(nil))
}

// line cuts s to one printable line of at most n bytes, never inside a character.
func line(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
	if len(s) <= n {
		return s
	}
	s = s[:n]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// IDOf returns the dead-letter id of a sealed record.
func IDOf(r *kgo.Record) string { return header(r, DeadLetterID) }
