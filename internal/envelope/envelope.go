// Package envelope holds a record and its history: where it was first read, how often it was tried, why it failed,
// and how that is written into the headers of a forwarded record and read back.
//
// It knows kgo.Record as data. It stays free of which topics there are, of Postgres and of clients.
package envelope

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// NoIndex is the index of a Kafka record that is forwarded undecoded.
const NoIndex = -1

// Origin is where a decision was first read.
type Origin struct {
	Topic     string
	Partition int32
	Offset    int64
	Index     int       // place inside its Kafka record, from 0; NoIndex where it was never decoded
	Timestamp time.Time // of the Kafka record
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
}

// Open reads a record of a topic that anyone may write: headers named like ours are not trusted.
func Open(r *kgo.Record) Envelope {
	return Envelope{Record: r, Origin: Origin{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Index: NoIndex, Timestamp: r.Timestamp,
	}}
}

// OpenParked reads a record of the parking topic, whose only writers are Docket's own. What is missing or makes no
// sense counts as a record parked for the first time: attempt 0, due now, first read where it is now. A not-before
// further than maxBackoff from the record's own Kafka timestamp counts as that far.
func OpenParked(r *kgo.Record, maxBackoff time.Duration) Envelope {
	e := Open(r)
	e.Parked = true
	partition, perr := strconv.ParseInt(header(r, OriginalPartition), 10, 32)
	offset, oerr := strconv.ParseInt(header(r, OriginalOffset), 10, 64)
	if topic := header(r, OriginalTopic); isTopic(topic) && perr == nil && oerr == nil && partition >= 0 && offset >= 0 {
		e.Origin.Topic, e.Origin.Partition, e.Origin.Offset = topic, int32(partition), offset
		if i, err := strconv.ParseInt(header(r, OriginalIndex), 10, 32); err == nil && i >= 0 {
			e.Origin.Index = int(i)
		}
		if t, err := time.Parse(time.RFC3339Nano, header(r, OriginalTimestamp)); err == nil {
			e.Origin.Timestamp = t
		}
	}
	if n, err := strconv.ParseInt(header(r, RetryAttempt), 10, 32); err == nil && n > 0 {
		e.Attempt = int(n)
	}
	if ms, err := strconv.ParseInt(header(r, NotBefore), 10, 64); err == nil && ms > 0 {
		e.NotBefore = time.UnixMilli(ms)
		if limit := r.Timestamp.Add(maxBackoff); e.NotBefore.After(limit) {
			e.NotBefore = limit
		}
	}
	if t, err := time.Parse(time.RFC3339Nano, header(r, FirstFailedAt)); err == nil {
		e.FirstFailedAt = t
	}
	e.Code = header(r, FailureCode)
	return e
}

// isTopic says whether Kafka would take this as the name of a topic. What is not one was not written by us, and could be
// longer than what all headers of ours may take together.
func isTopic(name string) bool {
	const most = 249
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= most
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
