package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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
)

// ours are the headers that Docket writes: what comes in under these names is never passed on.
var ours = map[string]bool{
	OriginalTopic: true, OriginalPartition: true, OriginalOffset: true, OriginalIndex: true, OriginalTimestamp: true,
	FailureKind: true, FailureCode: true, FailureMessage: true, FailureTable: true, FailureColumn: true, FailureConstraint: true,
	FirstFailedAt: true, FailedAt: true, RetryAttempt: true, NotBefore: true, DeadLetterID: true, Consumer: true,
}

// necessary are those of ours that stay on a record which the broker refuses as too large.
var necessary = map[string]bool{
	OriginalTopic: true, OriginalPartition: true, OriginalOffset: true, OriginalIndex: true,
	FailureKind: true, FailureCode: true, DeadLetterID: true, RetryAttempt: true, NotBefore: true,
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
)

// Cause is why a record is forwarded. None of it comes from the payload or quotes the server.
type Cause struct {
	Kind                      Kind
	Code                      string // SQLSTATE, or a reason of the decoder or of ours
	Message                   string // one line of our own words
	Table, Column, Constraint string // where Postgres names them
}

// Limits in bytes that keep the headers of ours within 4 KiB together: a topic's name is at most 249 by Kafka's own
// rule, the rest are numbers and times.
const (
	maxMessage = 1024
	maxName    = 256
	maxCode    = 64
)

// Sealed is what [Envelope.Seal] writes beside the cause.
type Sealed struct {
	Topic     string    // where to
	Index     int       // place of the decision inside its Kafka record, NoIndex where it was never decoded
	Value     []byte    // the forwarded value, nil stays nil
	At        time.Time // now
	Attempt   int
	NotBefore time.Time // zero: none is written
	Consumer  string    // group/instance
}

// Seal makes the record to forward: key, value and headers as they came, ours replaced. The partition is left to the
// producer, which chooses it by key. The Kafka timestamp is the time of sealing, so that the retention of the topic
// it goes to counts from now.
func (e Envelope) Seal(c Cause, s Sealed) *kgo.Record {
	origin := e.Origin
	origin.Index = s.Index
	r := &kgo.Record{Topic: s.Topic, Key: e.Record.Key, Value: s.Value, Timestamp: s.At}
	r.Headers = make([]kgo.RecordHeader, 0, len(e.Record.Headers)+len(ours))
	for _, h := range e.Record.Headers {
		if !ours[h.Key] {
			r.Headers = append(r.Headers, h)
		}
	}
	add := func(key, value string) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	add(OriginalTopic, origin.Topic)
	add(OriginalPartition, strconv.Itoa(int(origin.Partition)))
	add(OriginalOffset, strconv.FormatInt(origin.Offset, 10))
	if origin.Index >= 0 {
		add(OriginalIndex, strconv.Itoa(origin.Index))
	}
	add(OriginalTimestamp, stamp(origin.Timestamp))
	add(FailureKind, string(c.Kind))
	add(FailureCode, line(c.Code, maxCode))
	add(FailureMessage, line(c.Message, maxMessage))
	for _, named := range [...][2]string{{FailureTable, c.Table}, {FailureColumn, c.Column}, {FailureConstraint, c.Constraint}} {
		if named[1] != "" {
			add(named[0], line(named[1], maxName))
		}
	}
	first := e.FirstFailedAt
	if first.IsZero() {
		first = s.At
	}
	add(FirstFailedAt, stamp(first))
	add(FailedAt, stamp(s.At))
	add(RetryAttempt, strconv.Itoa(s.Attempt))
	if !s.NotBefore.IsZero() {
		add(NotBefore, strconv.FormatInt(s.NotBefore.UnixMilli(), 10))
	}
	add(DeadLetterID, ID(origin, s.Value))
	add(Consumer, line(s.Consumer, maxName))
	return r
}

// Bare is the record with the necessary ones of our headers alone: what is sent when the broker refuses it whole.
func Bare(r *kgo.Record) *kgo.Record {
	bare := &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
	for _, h := range r.Headers {
		if necessary[h.Key] {
			bare.Headers = append(bare.Headers, h)
		}
	}
	return bare
}

// ID is the dead-letter id: the same for the same decision wherever it turns up. It is the hex of SHA-256 over
// original topic, partition, offset and index (decimal, empty where there is none) joined by zero bytes, then a zero
// byte and the forwarded value.
func ID(o Origin, value []byte) string {
	h := sha256.New()
	index := ""
	if o.Index >= 0 {
		index = strconv.Itoa(o.Index)
	}
	h.Write([]byte(o.Topic + "\x00" + strconv.Itoa(int(o.Partition)) + "\x00" + strconv.FormatInt(o.Offset, 10) + "\x00" + index + "\x00"))
	h.Write(value)
	return hex.EncodeToString(h.Sum(nil))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

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
