// Package envelope holds a record and its history: where it was first read, how often it was tried, why it failed,
// and how that is written into the headers of a forwarded record and read back.
//
// It knows kgo.Record as data. It stays free of which topics there are, of Postgres and of clients.
package envelope

import (
	"errors"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// NoIndex is the index of a Kafka record that is forwarded undecoded.
const NoIndex = -1

// NoPlace is the partition and the offset of what was refused before it came to Kafka: its topic is the one that it was meant
// for, and it is forwarded without the headers of partition, offset and index.
const NoPlace = -1

// Origin is where a decision was first read.
type Origin struct {
	Topic     string
	Partition int32     // NoPlace where it never was in Kafka
	Offset    int64     // NoPlace where it never was in Kafka
	Index     int       // place inside its Kafka record, from 0; NoIndex where it was never decoded
	Timestamp time.Time // of the Kafka record, or when it came where it never was one
}

// Envelope is a record with its history. A record of the source topic has none: it is at attempt 0 and not Parked.
type Envelope struct {
	Record        *kgo.Record
	Origin        Origin
	Parked        bool      // it comes from the parking topic
	Attempt       int       // tries spent since it was parked, 0 or more
	NotBefore     time.Time // zero: due now
	FirstFailedAt time.Time // zero: never failed before
	Code          string    // why it was parked, where that is known
	UploadedBy    string    // the client of the collector that uploaded it, see [Opener.Uploader]; empty: none that is proven
}

// Open reads a record of a topic that anyone may write: headers named like ours are not trusted.
func Open(r *kgo.Record) Envelope {
	return Envelope{Record: r, Origin: Origin{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Index: NoIndex, Timestamp: r.Timestamp,
	}}
}

// Unplaced is a record that came at that time and never was in Kafka; its topic is the one that it was meant for.
func Unplaced(r *kgo.Record, came time.Time) Envelope {
	return Envelope{Record: r, Origin: Origin{Topic: r.Topic, Partition: NoPlace, Offset: NoPlace, Index: NoIndex, Timestamp: came}}
}

// OpenParked is [Opener.OpenParked] of a single record.
func OpenParked(r *kgo.Record, maxBackoff time.Duration) Envelope {
	return new(Opener).OpenParked(r, maxBackoff)
}

// Opener opens the records of a batch one after another. What one says like the one before is kept once. The zero value is
// ready; it belongs to one goroutine.
type Opener struct{ topic, code, uploader string }

// OpenParked reads a record of the parking topic, whose only writers are Docket's own. What is missing or makes no
// sense counts as a record parked for the first time: attempt 0, due now, first read where it is now. A not-before
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
	// One that is out of range is read as the largest: it is more than any maximum.
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

// Due is when a record of the parking topic may be replayed, as [Opener.OpenParked] reads it; zero: now.
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

// number reads a whole number. A header that is not there is none, and an error would cost more than all else.
func number(text []byte, bits int) (n int64, ok bool) {
	if len(text) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, bits)
	return n, err == nil
}

// again is a text, the one that was kept where it says the same.
func again(kept *string, text []byte) string {
	if *kept != string(text) {
		*kept = string(text)
	}
	return *kept
}

// history is what the headers of a parked record say, each as the last of its name does, as Kafka's own clients read it.
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

// isTopic says whether Kafka would take this as the name of a topic. What is not one was not written by us, and could be
// longer than what all headers of ours may take together.
func isTopic(name []byte) bool {
	const most = 249
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return len(name) > 0 && len(name) <= most
}

// header is the value of the last header of that name, as Kafka's own clients read it; empty where there is none.
func header(r *kgo.Record, key string) string {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == key {
			return string(r.Headers[i].Value)
		}
	}
	return ""
}
