package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/escape"
)

// Sealer seals the records of a batch one after another. A header value that repeats is written once. The other
// values of a few hundred records share memory, so a parked batch costs little memory and garbage collection.
// Returned bytes are never written again, so the records may live on. The zero value is ready. It belongs to one
// goroutine.
type Sealer struct {
	Keys Keys // they sign the records

	left    int // records still to come, as far as known
	records []kgo.Record
	headers []kgo.RecordHeader
	bytes   []byte

	texts   [len(textual)]writtenText
	times   [allTimes]writtenTime
	numbers [allNumbers]writtenNumber

	digest hash.Hash
	sum    [sha256.Size]byte
	place  []byte // of a decision, as in its id
}

type (
	writtenText struct {
		of    string
		value []byte // nil: none yet
	}
	writtenTime struct {
		of    time.Time
		value []byte
	}
	writtenNumber struct {
		of    int64
		value []byte
	}
)

// textual are Docket's headers with a text, and the most bytes of each.
var textual = [...]struct {
	name string
	most int
}{
	{OriginalTopic, 0}, // Kafka limits it
	{FailureKind, 0}, {FailureCode, maxCode}, {FailureMessage, maxMessage},
	{FailureTable, maxName}, {FailureColumn, maxName}, {FailureConstraint, maxName}, {Consumer, maxName},
}

// Positions in [textual].
const (
	topicText = iota
	kindText
	codeText
	messageText
	tableText
	columnText
	constraintText
	consumerText
)

// Positions of written times.
const (
	originalTime = iota
	firstTime
	failedTime
	allTimes
)

// Positions of written numbers.
const (
	partitionNumber = iota
	indexNumber
	attemptNumber
	notBeforeNumber
	refusedNumber
	allNumbers
)

// mostTogether limits the records that share memory, so that one that lives long keeps few in memory.
const mostTogether = 256

// mostHeaders limits the headers that share memory, unless one record has more: its writer chooses their number.
const mostHeaders = 32 * mostTogether

// bytesEach is the usual size of a record's own header values: offset, time and id.
const bytesEach = 128

// Expect says how many records are still to be sealed. It may be wrong.
func (s *Sealer) Expect(n int) { s.left = n }

// Seal makes the record to forward: key, value and headers as they came, with Docket's replaced, and without an
// unproven [UploadedBy]. The producer chooses the partition by key. The Kafka timestamp is the time of sealing, so
// that the topic's retention counts from now.
func (s *Sealer) Seal(e *Envelope, c *Cause, to Sealed) *kgo.Record {
	together := min(max(s.left, 1), mostTogether)
	s.left--
	if len(s.records) == cap(s.records) {
		s.records = make([]kgo.Record, 0, together)
	}
	s.records = append(s.records, kgo.Record{Topic: to.Topic, Key: e.Record.Key, Value: to.Value, Timestamp: to.At})
	r := &s.records[len(s.records)-1]
	if most := len(e.Record.Headers) + s.written(to); cap(s.headers)-len(s.headers) < most {
		s.headers = make([]kgo.RecordHeader, 0, max(most, min(most*together, mostHeaders)))
	}
	if cap(s.bytes)-len(s.bytes) < bytesEach {
		s.bytes = make([]byte, 0, bytesEach*together)
	}
	from := len(s.headers)
	for _, h := range e.Record.Headers {
		if ours[h.Key] || h.Key == UploadedBy && (s.Keys.None() || !s.Keys.Prove(e.Record)) {
			continue
		}
		s.headers = append(s.headers, h)
	}
	s.write(e, c, to)
	if !s.Keys.None() {
		s.add(Mac, s.keep(s.Keys.all[0].hex(s.free(), r.Key, r.Value, s.headers[from:])))
	}
	r.Headers = s.headers[from:len(s.headers):len(s.headers)]
	return r
}

// written returns the most headers that Docket adds to a record.
func (s *Sealer) written(to Sealed) int {
	n := len(ours)
	if to.Traceparent == "" {
		n--
	}
	if s.Keys.None() {
		n--
	}
	return n
}

// write writes Docket's headers.
func (s *Sealer) write(e *Envelope, c *Cause, to Sealed) {
	origin := e.Origin
	origin.Index = to.Index
	s.text(topicText, origin.Topic)
	if origin.Partition != NoPlace {
		s.number(OriginalPartition, partitionNumber, int64(origin.Partition))
		s.add(OriginalOffset, s.keep(strconv.AppendInt(s.free(), origin.Offset, 10)))
	}
	if origin.Index >= 0 {
		s.number(OriginalIndex, indexNumber, int64(origin.Index))
	}
	s.time(OriginalTimestamp, originalTime, origin.Timestamp)
	s.text(kindText, string(c.Kind))
	s.text(codeText, c.Code)
	s.text(messageText, c.Message)
	for at, name := range [...]string{c.Table, c.Column, c.Constraint} {
		if name != "" {
			s.text(tableText+at, name)
		}
	}
	first := e.FirstFailedAt
	if first.IsZero() {
		first = to.At
	}
	s.time(FirstFailedAt, firstTime, first)
	s.time(FailedAt, failedTime, to.At)
	s.number(RetryAttempt, attemptNumber, int64(to.Attempt))
	if !to.NotBefore.IsZero() {
		s.number(NotBefore, notBeforeNumber, to.NotBefore.UnixMilli())
	}
	s.add(DeadLetterID, s.id(origin, to.Value))
	s.text(consumerText, to.Consumer)
	switch {
	case to.Refused > 0:
		s.number(Refused, refusedNumber, int64(to.Refused))
	case !to.NotBefore.IsZero(): // it is parked
	case to.Decision != nil:
		s.claim(decision.ClaimOf(to.Decision))
	default:
		s.claim(decision.ClaimOf(to.Value))
	}
	if to.Traceparent != "" {
		s.add(Traceparent, s.keep(append(s.free(), line(to.Traceparent, maxCode)...)))
	}
}

func (s *Sealer) add(key string, value []byte) {
	s.headers = append(s.headers, kgo.RecordHeader{Key: key, Value: value})
}

// free returns the room that is left for bytes.
func (s *Sealer) free() []byte { return s.bytes[len(s.bytes):] }

// keep returns the bytes that were appended to the free room. If they did not fit, they have memory of their own.
func (s *Sealer) keep(value []byte) []byte {
	if free := cap(s.bytes) - len(s.bytes); len(value) <= free && cap(value) == free {
		s.bytes = s.bytes[:len(s.bytes)+len(value)]
	}
	return value[:len(value):len(value)]
}

func (s *Sealer) text(at int, text string) {
	w := &s.texts[at]
	if w.value == nil || w.of != text {
		value := text
		if most := textual[at].most; most > 0 {
			value = line(text, most)
		}
		*w = writtenText{text, []byte(value)}
	}
	s.add(textual[at].name, w.value)
}

func (s *Sealer) number(key string, at int, n int64) {
	w := &s.numbers[at]
	if w.value == nil || w.of != n {
		*w = writtenNumber{n, s.keep(strconv.AppendInt(s.free(), n, 10))}
	}
	s.add(key, w.value)
}

func (s *Sealer) time(key string, at int, t time.Time) {
	w := &s.times[at]
	if w.value == nil || !w.of.Equal(t) {
		*w = writtenTime{t, s.keep(stamp(s.free(), t))}
	}
	s.add(key, w.value)
}

// id returns [ID] as the value of a header.
func (s *Sealer) id(o Origin, value []byte) []byte {
	if s.digest == nil {
		s.digest = sha256.New()
	}
	s.digest.Reset()
	s.place = appendPlace(s.place[:0], o)
	s.digest.Write(s.place)
	s.digest.Write(value)
	return s.keep(hex.AppendEncode(s.free(), s.digest.Sum(s.sum[:0])))
}

// claim writes the claimed identity. The id is escaped as in JSON, with unprintable characters as \u.
func (s *Sealer) claim(c decision.Claim) {
	if c.ID != "" {
		id := escape.JSON(c.Escaped)
		s.add(DecisionID, s.keep(append(s.free(), whole(id, maxID)...)))
	}
	if !c.Time.IsZero() {
		s.add(DecisionTime, s.keep(stamp(s.free(), c.Time)))
	}
}

// whole returns the first n bytes of the inside of a JSON string, without a part of a character or escape at the end.
func whole(raw []byte, n int) []byte {
	if len(raw) <= n {
		return raw
	}
	at := 0
	for {
		_, size := utf8.DecodeRune(raw[at:])
		switch {
		case raw[at] != '\\':
		case raw[at+1] == 'u':
			size = 6
		default:
			size = 2
		}
		if at+size > n {
			return raw[:at]
		}
		at += size
	}
}

// appendPlace appends the part of a dead-letter id's input before the value.
func appendPlace(b []byte, o Origin) []byte {
	b = append(append(b, o.Topic...), 0)
	if o.Partition == NoPlace {
		b = append(b, 0, 0)
	} else {
		b = append(strconv.AppendInt(b, int64(o.Partition), 10), 0)
		b = append(strconv.AppendInt(b, o.Offset, 10), 0)
	}
	if o.Index >= 0 {
		b = strconv.AppendInt(b, int64(o.Index), 10)
	}
	return append(b, 0)
}

func stamp(b []byte, t time.Time) []byte { return t.UTC().AppendFormat(b, time.RFC3339Nano) }
