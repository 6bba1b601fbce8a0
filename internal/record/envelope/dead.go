package envelope

import (
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// RetryOf is the header with the mark of a retry, on a record that was put back on its original topic. The consumer
// does not replace it, so it stays with the record in every home, like other programs' headers. It is not trusted:
// only the giver of a mark knows its meaning.
const RetryOf = "docket-retry-of"

// Dead is the content of a record in a dead-letter topic.
type Dead struct {
	ID            string // computed, never taken from a header
	Origin        Origin
	Cause         Cause
	FirstFailedAt time.Time
	FailedAt      time.Time
	Headers       []kgo.RecordHeader // headers of others as they came, without the mark and without an unproven UploadedBy
	Refused       int                // number of decisions if its value is a rest; 0: it is not
	RetryOf       string             // the mark of the retry that it was; empty: none
}

// Unproven is the code of a dead letter that is [Foreign].
const Unproven = "unproven"

// foreign is a dead letter of which only value and place are known. Its claims in Docket's headers are kept among its
// headers, for operators to see.
func foreign(r *kgo.Record) Dead {
	origin := Open(r).Origin
	d := Dead{ID: ID(origin, r.Value), Origin: origin, FirstFailedAt: r.Timestamp, FailedAt: r.Timestamp, Cause: Cause{Kind: Foreign, Code: Unproven,
		Message: "nothing proves that Docket wrote this record, so what its headers say is not believed"}}
	for _, h := range r.Headers {
		if h.Key != RetryOf {
			d.Headers = append(d.Headers, h)
		}
	}
	return d
}

// OpenDead is [Keys.OpenDead] without keys.
func OpenDead(r *kgo.Record) Dead { return Keys{}.OpenDead(r) }

// OpenDead reads a record of a dead-letter topic. Missing or senseless values get defaults: first read at its present
// place, failed when it was written, code "unknown". A record with a topic and no place in it never had a place.
//
// The id is computed, because a chosen id in a header could keep another dead letter out of the ledger. If keys do
// not prove its headers, it is [Foreign].
func (k Keys) OpenDead(r *kgo.Record) Dead {
	if !k.Prove(r) {
		return foreign(r)
	}
	e := OpenParked(r, 0)
	d := Dead{Origin: e.Origin, FirstFailedAt: e.FirstFailedAt, FailedAt: r.Timestamp}
	if h := ourHeaders(r); isTopic(h.topic) && h.partition == nil && h.offset == nil && h.index == nil {
		d.Origin = Unplaced(&kgo.Record{Topic: string(h.topic)}, r.Timestamp).Origin
		if t, err := time.Parse(time.RFC3339Nano, string(h.timestamp)); err == nil {
			d.Origin.Timestamp = t
		}
	}
	for _, h := range r.Headers {
		value := line(string(h.Value), maxMessage)
		switch h.Key {
		case FailureKind:
			d.Cause.Kind = Kind(line(string(h.Value), maxCode))
		case FailureCode:
			d.Cause.Code = line(string(h.Value), maxCode)
		case FailureMessage:
			d.Cause.Message = value
		case FailureTable:
			d.Cause.Table = value
		case FailureColumn:
			d.Cause.Column = value
		case FailureConstraint:
			d.Cause.Constraint = value
		case FailedAt:
			if t, err := time.Parse(time.RFC3339Nano, string(h.Value)); err == nil {
				d.FailedAt = t
			}
		case Refused:
			if n, ok := number(h.Value, 32); ok && n > 0 {
				d.Refused = int(n)
			}
		case RetryOf:
			if utf8.Valid(h.Value) {
				d.RetryOf = line(string(h.Value), maxName)
			}
		}
		if !ours[h.Key] && h.Key != RetryOf && (h.Key != UploadedBy || !k.None()) {
			d.Headers = append(d.Headers, h)
		}
	}
	if !knownKind[d.Cause.Kind] {
		d.Cause.Kind = Data
	}
	if d.Cause.Code == "" {
		d.Cause.Code = "unknown"
	}
	d.ID = ID(d.Origin, r.Value)
	if d.FirstFailedAt.IsZero() || d.FirstFailedAt.After(d.FailedAt) {
		d.FirstFailedAt = d.FailedAt
	}
	return d
}

var knownKind = map[Kind]bool{Decode: true, Data: true, Conflict: true, Transient: true, Exhausted: true}
