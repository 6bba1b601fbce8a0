package worker

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// read makes a letter of a record that Postgres can hold: with a path that fits an index, a mark that is a UUID and
// times within timestamptz. All other fields are safe: [envelope.OpenDead] returns clean text, a decoded decision has
// no NUL and only UTF-8, and [ledger.Header] keeps any bytes.
func (in *Intake) read(d *decision.Decoder, r *kgo.Record) ledger.Letter {
	dead := in.cfg.Keys.OpenDead(r)
	l := ledger.Letter{
		ID: dead.ID, Origin: dead.Origin, Cause: dead.Cause, Key: r.Key, Value: r.Value, RetryOf: dead.RetryOf,
		Found:         ledger.Found{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Stamp: dated(r.Timestamp)},
		FirstFailedAt: dated(dead.FirstFailedAt), FailedAt: dated(dead.FailedAt),
	}
	l.Origin.Timestamp = dated(l.Origin.Timestamp)
	if !isMark(l.RetryOf) { // a header of others; it stays with the record
		l.RetryOf = ""
		for _, h := range r.Headers {
			if h.Key == envelope.RetryOf {
				dead.Headers = append(dead.Headers, h)
			}
		}
	}
	for _, h := range dead.Headers {
		l.Headers = append(l.Headers, ledger.Header{Key: h.Key, Value: h.Value})
		if h.Key == envelope.UploadedBy && dead.Cause.Kind != envelope.Foreign { // it is there only if a key proves it
			l.Client = string(envelope.Uploader(string(h.Value)))
		}
	}
	if dead.Refused > 0 && in.lookInto(d, &l, dead.Refused) {
		return l
	}
	in.look(d, &l)
	return l
}

// look fills in the fields of the value if it is one decision. For a refused one these are id and time, as far as
// they are readable. Of several decisions it notes the ids, also of an array that the decoder refuses as a whole. No value
// may keep a letter out of the ledger, so a panic of the decoder counts as an unreadable value.
func (in *Intake) look(d *decision.Decoder, l *ledger.Letter) {
	defer func() {
		if recover() != nil {
			l.Path, l.DecisionID, l.DecisionTime, l.Held = "", "", time.Time{}, nil
		}
	}()
	d.Begin(1)
	read, refused := d.Decode(l.Value, in.cfg.MaxRecordBytes)
	switch {
	case refused != nil:
		claimed(l, l.Value)
		few := fewIDs()
		for place, c := range decision.ClaimsOf(l.Value, in.cfg.MaxRecordBytes) {
			if !few.add(ledger.Held{Place: place, ID: c.ID, Time: c.Time}) {
				break
			}
		}
		l.Held = few.all
	case !read.Sole:
		l.Held = heldOf(read.Parts, fewIDs())
	case read.Parts[0].Err != nil:
		claimed(l, read.Parts[0].Value) // without an array around it
	default:
		log := &read.Parts[0].Log
		// Clone, or each string would keep the whole inflated value in memory while the batch is in hand.
		l.Path = shortPath(strings.Clone(log.Path.V))
		l.DecisionID, l.DecisionTime = strings.Clone(log.ID), log.Time
	}
}

// claimed fills in the id and the time that a refused decision claims.
func claimed(l *ledger.Letter, refused []byte) {
	c := decision.ClaimOf(refused)
	l.DecisionID, l.DecisionTime = c.ID, c.Time
}

// lookInto fills in the fields of each decision in a rest. If the value is not a rest, the letter is an ordinary one.
func (in *Intake) lookInto(d *decision.Decoder, l *ledger.Letter, refused int) (ok bool) {
	defer func() {
		if recover() != nil {
			l.Refused, l.Held, ok = 0, nil, false
		}
	}()
	d.Begin(1)
	parts, ok := d.Rest(l.Value, in.cfg.MaxRecordBytes)
	if !ok || len(parts) != refused {
		return false
	}
	l.Refused, l.Held = refused, heldOf(parts, ids{most: len(parts), bytes: math.MaxInt})
	return true
}

// ids are the decisions of a letter that have a readable id, up to limits.
type ids struct {
	all   []ledger.Held
	most  int // decisions
	bytes int // that are left for ids
}

// fewIDs limits a letter that is not a rest. Before a rest, Docket makes a hundred letters. But some KB of gzip can be an array
// of a hundred thousand ids: many of these would fill the memory of the desk and the index of the ledger.
func fewIDs() ids { return ids{most: 1000, bytes: 64 << 10} }

// add reports whether there was room for it.
func (i *ids) add(h ledger.Held) bool {
	if i.bytes -= len(h.ID); len(i.all) == i.most || i.bytes < 0 {
		return false
	}
	i.all = append(i.all, h)
	return true
}

// heldOf returns the decisions of a letter that have a readable id, within limits.
func heldOf(parts []decision.Part, limits ids) []ledger.Held {
	for i := range parts {
		h := ledger.Held{Place: parts[i].Index, ID: parts[i].Log.ID, Time: parts[i].Log.Time}
		if parts[i].Err != nil {
			c := decision.ClaimOf(parts[i].Value)
			h.ID, h.Time = c.ID, c.Time
		}
		if h.ID == "" {
			continue
		}
		h.ID = strings.Clone(h.ID)
		if !limits.add(h) {
			break
		}
	}
	return limits.all
}

// isMark reports whether the ledger can have made this mark: a UUID in canonical form.
func isMark(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return false
		}
	}
	return true
}

// longestPath limits the bytes of a path in the ledger. A row of a B-tree index has less than 2704 in all.
const longestPath = 1024

// shortPath cuts a path that is too long for an index.
func shortPath(path string) string {
	if len(path) <= longestPath {
		return path
	}
	const more = "…"
	cut := longestPath - len(more)
	for !utf8.RuneStart(path[cut]) {
		cut--
	}
	return path[:cut] + more
}

// dated brings a time into the years with four digits. A producer may claim any 64-bit number of milliseconds, and
// timestamptz ends long before.
func dated(t time.Time) time.Time {
	switch first, last := time.Unix(-62135596800, 0).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC); {
	case t.IsZero() || t.Before(first):
		return first
	case t.After(last):
		return last
	}
	return t
}

// The forms of a letter that the ledger refused, in the order in which they are tried.

func asWhole(l ledger.Letter) ledger.Letter { return l }

// asPlain drops texts that others wrote.
func asPlain(l ledger.Letter) ledger.Letter {
	l.Headers, l.Path, l.DecisionID, l.DecisionTime, l.Held = nil, "", "", time.Time{}, nil
	l.Cause.Message = "the ledger did not take the headers and the message of this record; they are in its dead-letter topic"
	return l
}

// asBare drops the key too.
func asBare(l ledger.Letter) ledger.Letter {
	l.Key = nil
	l.Cause = envelope.Cause{Kind: l.Cause.Kind, Code: l.Cause.Code,
		Message: "the ledger did not take the key, the headers and the message of this record; they are in its dead-letter topic"}
	return l
}
