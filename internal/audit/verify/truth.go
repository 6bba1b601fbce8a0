package verify

import (
	"fmt"
	"slices"
	"time"

	"docket/internal/record/envelope"
)

// Decision is one decision of the source and its expected result.
type Decision struct {
	Place
	ID    string    // decision_id, or empty if unreadable
	Time  time.Time // its own
	Key   Sum       // of the Kafka record's key
	Value Sum       // of its forwarded value
	Whole Sum       // of the value of its Kafka record
	Body  []byte    // its exact bytes, if kept; needed only for rows with their Raw
	// Code is the failure code that it should be dead-lettered with; empty: a row, or a duplicate of one. Conflicts
	// are not included, because they follow from the rows.
	Code string
	// Topic key for order, empty where Key is null.
	KeyText string
	// Reached is the time when its Kafka record had reached Kafka, by the clock of the brokers, or later; zero: not
	// known. For a record of a transaction it is the time of the commit.
	Reached time.Time
	// Stamp is the timestamp of its Kafka record, by any clock; zero: not known.
	Stamp time.Time
	// Sole says that it is the only one of its Kafka record.
	Sole bool
}

// Identity returns its identity in the table.
func (d *Decision) Identity() Identity { return identity(d.ID, d.Time) }

// named returns the decision's id, or its key if it has none.
func (d *Decision) named() string {
	if d.ID != "" {
		return d.ID
	}
	return d.KeyText
}

// Span is a range of offsets of one partition: from From up to To, without To.
type Span struct{ From, To int64 }

// Truth has every decision of the source records that were read.
type Truth struct {
	// KnowsTable says that Code includes the table's refusals. Otherwise only the decoder's are known, and a dead
	// letter of kind data can be right.
	KnowsTable bool
	// Spans limits the truth to these offsets of each partition; nil: it has all records ever produced.
	Spans map[Partition]Span

	list    []*Decision
	byPlace map[Place]*Decision
	many    map[Place]int // decisions of a record, by its place
	ordered bool
}

// NewTruth makes an empty truth. It can have records of several source topics.
func NewTruth() *Truth {
	return &Truth{byPlace: make(map[Place]*Decision), many: make(map[Place]int)}
}

// Add adds the decisions of one Kafka record, in order of their index. A repeated record panics.
func (t *Truth) Add(ds ...Decision) {
	for i := range ds {
		d := &ds[i]
		d.Time = d.Time.UTC().Truncate(time.Microsecond)
		d.Sole = len(ds) == 1
		if _, twice := t.byPlace[d.Place]; twice {
			panic(fmt.Sprintf("verify: %v was added twice", d.Place))
		}
		t.byPlace[d.Place] = d
		t.list = append(t.list, d)
		t.many[d.Place.record()]++
	}
	t.ordered = false
}

// Len returns the number of decisions.
func (t *Truth) Len() int { return len(t.list) }

// Decisions returns all decisions in order of place.
func (t *Truth) Decisions() []*Decision {
	if !t.ordered {
		slices.SortFunc(t.list, func(a, b *Decision) int { return a.Place.Compare(b.Place) })
		t.ordered = true
	}
	return t.list
}

// At returns the decision at the place in a forwarded record or a row; nil if nothing was produced there.
func (t *Truth) At(p Place) *Decision {
	if p.Index == envelope.NoIndex && t.many[Place{p.Topic, p.Partition, p.Offset, 0}] == 1 {
		p.Index = 0
	}
	return t.byPlace[p]
}

// Covers reports whether the truth includes a place.
func (t *Truth) Covers(p Place) bool {
	if t.Spans == nil {
		return true
	}
	s, ok := t.Spans[p.in()]
	return ok && p.Offset >= s.From && p.Offset < s.To
}
