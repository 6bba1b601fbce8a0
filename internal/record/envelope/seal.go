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
	// DecisionID and DecisionTime are what the value of a dead letter says about which decision it is, as far as that can be read; see
	// [decision.ClaimOf].
	DecisionID   = "x-decision-id"
	DecisionTime = "x-decision-time"
	// Refused is on a dead letter that holds several refused decisions of one upload, and says how many. Its value is a rest; see
	// [decision.AppendRest].
	Refused = "x-refused-decisions"
	// Traceparent says, as W3C's traceparent does, in which trace the record goes on; written only where there are traces. A
	// traceparent that the record came with is a header of others and stays as it is.
	Traceparent = "x-traceparent"
)

// ours are the headers that Docket writes: what comes in under these names is never passed on.
var ours = map[string]bool{
	OriginalTopic: true, OriginalPartition: true, OriginalOffset: true, OriginalIndex: true, OriginalTimestamp: true,
	FailureKind: true, FailureCode: true, FailureMessage: true, FailureTable: true, FailureColumn: true, FailureConstraint: true,
	FirstFailedAt: true, FailedAt: true, RetryAttempt: true, NotBefore: true, DeadLetterID: true, Consumer: true, Traceparent: true,
	DecisionID: true, DecisionTime: true, Refused: true, Mac: true,
}

// necessary are those of ours that stay on a record which the broker refuses as too large.
var necessary = map[string]bool{
	OriginalTopic: true, OriginalPartition: true, OriginalOffset: true, OriginalIndex: true,
	FailureKind: true, FailureCode: true, DeadLetterID: true, RetryAttempt: true, NotBefore: true, Refused: true,
}

// Kind is what sort of failure sent a record away.
type Kind string

// The kinds of failure.
const (
	Decode    Kind = "decode"    // the decoder refused it
	Data      Kind = "data"      // the table refused it
	Conflict  Kind = "conflict"  // the same decision is stored with another payload
	Transient Kind = "transient" // the database could not take it just now
	Exhausted Kind = "exhausted" // the last attempt failed too
	// Foreign is a dead letter whose headers of ours are not proven; see [Keys]. No program of ours writes it.
	Foreign Kind = "foreign"
)

// Cause is why a record is forwarded. None of it comes from the payload or quotes the server.
type Cause struct {
	Kind                      Kind
	Code                      string // SQLSTATE, or a reason of the decoder or of ours
	Message                   string // one line of our own words
	Table, Column, Constraint string // where Postgres names them
}

// Together is why refused decisions of one upload, at places from first to last of it, are forwarded in one dead letter. Its code is that of most of them,
// of several the one that came first.
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

// Limits in bytes that keep the headers of ours within 4 KiB together: a topic's name is at most 249 by Kafka's own
// rule, the rest are numbers and times.
const (
	maxMessage = 1024
	maxName    = 256
	maxCode    = 64
	maxID      = 1024 // of a decision, escaped
)

// Sealed is what [Sealer.Seal] writes beside the cause.
type Sealed struct {
	Topic     string    // where to
	Index     int       // place of the decision inside its Kafka record, NoIndex where it was never decoded
	Value     []byte    // the forwarded value, nil stays nil
	At        time.Time // now
	Attempt   int
	NotBefore time.Time // zero: none is written
	Consumer  string    // group/instance
	Refused   int       // decisions that the value holds, where it is a rest; 0: it is none
	// Traceparent is the trace in which the record goes on; empty: none is written.
	Traceparent string
}

// Seal is [Sealer.Seal] of a single record.
func (e Envelope) Seal(c Cause, s Sealed) *kgo.Record { return new(Sealer).Seal(&e, &c, s) }

// Bare is the record with the necessary ones of our headers alone: what is sent when the broker refuses it whole.
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

// ID is the dead-letter id: the same for the same decision wherever it turns up. It is the hex of SHA-256 over
// original topic, partition, offset and index (decimal, empty where there is none) joined by zero bytes, then a zero
// byte and the forwarded value.
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

// IDOf is the dead-letter id that a sealed record carries.
func IDOf(r *kgo.Record) string { return header(r, DeadLetterID) }
