// Package envelope has a record's history: where it was first read, how often it was tried, and why it failed. It
// writes the history into the headers of a forwarded record and reads it back.
//
// It uses kgo.Record as data. It knows no topics, and imports no Postgres and no client.
package envelope

import (
	"errors"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// NoIndex is the index of a Kafka record that is forwarded undecoded.
const NoIndex = -1

// NoPlace is the partition and the offset of data that was refused before it came to Kafka. Its topic is the intended
// one, and it is forwarded without the headers of partition, offset and index.
const NoPlace = -1

// Origin is the place where a decision was first read.
type Origin struct {
	Topic     string
	Partition int32     // NoPlace if it never was in Kafka
	Offset    int64     // NoPlace if it never was in Kafka
	Index     int       // place inside its Kafka record, from 0; NoIndex if it was never decoded
	Timestamp time.Time // of the Kafka record, or of its arrival if it never was one
}

// Envelope is a record with its history. A record of the source topic has none: it has attempt 0 and is not Parked.
type Envelope struct {
	Record        *kgo.Record
	Origin        Origin
	Parked        bool      // it comes from the parking topic
	Attempt       int       // tries spent since it was parked, 0 or more
	NotBefore     time.Time // zero: due now
	FirstFailedAt time.Time // zero: never failed before
	Code          string    // why it was parked, if known
	UploadedBy    string    // the client of the collector that uploaded it, see [Opener.Uploader]; empty: none is proven
}

// Open reads a record of a topic that anyone may write to. It does not trust headers with Docket's names.
func Open(r *kgo.Record) Envelope {
	return Envelope{Record: r, Origin: Origin{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Index: NoIndex, Timestamp: r.Timestamp,
	}}
}

// Unplaced makes an envelope of a record that came at this time and never was in Kafka. Its topic is the intended
// one.
func Unplaced(r *kgo.Record, came time.Time) Envelope {
	return Envelope{Record: r, Origin: Origin{Topic: r.Topic, Partition: NoPlace, Offset: NoPlace, Index: NoIndex, Timestamp: came}}
}

// OpenParked is [Opener.OpenParked] for a single record.
func OpenParked(r *kgo.Record, maxBackoff time.Duration) Envelope {
	return new(Opener).OpenParked(r, maxBackoff)
}

// Opener opens the records of a batch one after another. It keeps repeated texts once. The zero value is ready. It
// belongs to one goroutine.
type Opener struct{ topic, code, uploader string }

// OpenParked reads a record of the parking topic, which only Docket writes. Missing or senseless values count as
// those of a record parked for the first time: attempt 0, due now, first read at its present place. A not-before
// further than maxBackoff from the record's own Kafka timestamp counts as that far.
func (o *Opener) OpenParked(r *kgo.Record, maxBackoff time.Duration) Envelope {
	e := Open(r)
	e.Parked = true
	h := ourHeaders(r)
	partition, placed := number(h.partition, 32)
	offset, at := number(h.offset, 64)
	if isTopic(h.topic) && placed && at && partition >= 0 && offset >= 0 {
		topic := again(&o.topic, h.topic)
		e.Origin.Topic, e.Origin.Partition, e.Origin.Offset = topic, int32(partition), offset
		if i, ok := number(h.index, 32); ok && i >= 0 {
			e.Origin.Index = int(i)
		}
		if t, err := time.Parse(time.RFC3339Nano, string(h.timestamp)); err == nil {
			e.Origin.Timestamp = t
		}
	}
	// A value out of range counts as the largest, which is more than any maximum.
	if n, err := strconv.ParseInt(string(h.attempt), 10, 32); n > 0 && (err == nil || errors.Is(err, strconv.ErrRange)) {
		e.Attempt = int(n)
	}
	e.NotBefore = due(r, h.notBefore, maxBackoff)
	if t, err := time.Parse(time.RFC3339Nano, string(h.firstFailedAt)); err == nil {
		e.FirstFailedAt = t
	}
	e.Code = again(&o.code, h.code)
	return e
}

// Due returns when a record of the parking topic may be replayed, as [Opener.OpenParked] reads it; zero: now.
func Due(r *kgo.Record, maxBackoff time.Duration) time.Time {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == NotBefore {
			return due(r, r.Headers[i].Value, maxBackoff)
		}
	}
	return time.Time{}
}

func due(r *kgo.Record, notBefore []byte, maxBackoff time.Duration) time.Time {
	ms, ok := number(notBefore, 64)
	if !ok || ms <= 0 {
		return time.Time{}
	}
	at := time.UnixMilli(ms)
	if limit := r.Timestamp.Add(maxBackoff); at.After(limit) {
		return limit
	}
	return at
}

// number reads a whole number. A missing header has none. It returns no error value, because that would cost more
// than the rest.
func number(text []byte, bits int) (n int64, ok bool) {
	if len(text) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, bits)
	return n, err == nil
}

// again returns a text: the kept one if it is equal.
func again(kept *string, text []byte) string {
	if *kept != string(text) {
		*kept = string(text)
	}
	return *kept
}

// history has the headers of a parked record. Of several with one name the last counts, as in Kafka's own clients.
type history struct {
	topic, partition, offset, index, timestamp []byte
	attempt, notBefore, firstFailedAt, code    []byte
}

func ourHeaders(r *kgo.Record) (h history) {
	for i := range r.Headers {
		value := r.Headers[i].Value
		switch r.Headers[i].Key {
		case OriginalTopic:
			h.topic = value
		case OriginalPartition:
			h.partition = value
		case OriginalOffset:
			h.offset = value
		case OriginalIndex:
			h.index = value
		case OriginalTimestamp:
			h.timestamp = value
		case RetryAttempt:
			h.attempt = value
		case NotBefore:
			h.notBefore = value
		case FirstFailedAt:
			h.firstFailedAt = value
		case FailureCode:
			h.code = value
		}
	}
	return h
}

// OriginalTopicOf returns the topic where a forwarded record was first read, as its header says; empty if it has none.
func OriginalTopicOf(r *kgo.Record) string { return header(r, OriginalTopic) }

// isTopic reports whether Kafka accepts this as the name of a topic. Docket wrote no other names, and they could be
// longer than all of its headers may be together.
func isTopic(name []byte) bool {
	const most = 249
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return len(name) > 0 && len(name) <= most
}

// header returns the value of the last header of that name, as Kafka's own clients do; empty if there is none.
func header(r *kgo.Record, key string) string {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == key {
			return string(r.Headers[i].Value)
		}
	}
	return ""
}
