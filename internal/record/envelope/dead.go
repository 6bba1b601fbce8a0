package envelope

import (
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// RetryOf is the header under which a record that was put back on its original topic carries the mark of its retry. It is
// not among the headers of ours that the consumer replaces: like any header of others it travels with the record, to whatever
// home it finds. It is not trusted either: a mark means something only to whoever gave it out.
const RetryOf = "docket-retry-of"

// Dead is what a record of a dead-letter topic says of itself.
type Dead struct {
	ID            string // computed, whatever a header says
	Origin        Origin
	Cause         Cause
	FirstFailedAt time.Time
	FailedAt      time.Time
	Headers       []kgo.RecordHeader // those that are not ours, without the mark and without an UploadedBy that no key proves; as they came
	Refused       int                // decisions that it holds, where its value is a rest; 0: it is none
	RetryOf       string             // the mark of the retry that it was; empty: none
}

// Unproven is the code of a dead letter that is [Foreign].
const Unproven = "unproven"

// foreign is a dead letter of which nothing is known but what it holds and where it stands. What it claims in headers of ours is
// kept among its headers, to be looked at.
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

// OpenDead reads a record of a dead-letter topic. What is missing or makes no sense is put right as far as the record allows: first read where it
// is now, failed when it was written. The id is computed: an id that a header could choose would keep the letter out that it belongs to.
// A code that is missing is "unknown". One that names its topic and no place in it never had one. Where keys do not prove its headers it is
// [Foreign].
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
