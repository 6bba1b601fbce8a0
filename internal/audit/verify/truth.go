package verify

import (
	"fmt"
	"slices"
	"time"

	"docket/internal/record/envelope"
)

// Decision is one decision of the source and what it deserves.
type Decision struct {
	Place
	ID    string    // decision_id, empty where it cannot be read
	Time  time.Time // its own
	Key   Sum       // of the Kafka record's key
	Value Sum       // of the value that it is forwarded with
	Body  []byte    // its exact bytes, where they are kept; needed only for rows that carry their Raw
	// Code is the failure code that it has to be dead-lettered with; empty: a row, or a duplicate of one. Conflicts are
	// not written here, they follow from the rows.
	Code string
	// Topic key for order, empty where Key is null.
	KeyText string
	// Sole says that it is the only one of its Kafka record.
	Sole bool
}

// Identity is its identity for the table.
func (d *Decision) Identity() Identity { return identity(d.ID, d.Time) }

// named is the decision's id, or its key where it has none.
func (d *Decision) named() string {
	if d.ID != "" {
		return d.ID
	}
	return d.KeyText
}

// Span is a run of offsets of one partition: From and on, below To.
type Span struct{ From, To int64 }

// Truth is what the source holds: every decision of the records that were read of it.
type Truth struct {
	// KnowsTable says that Code also tells what the table refuses. Without it only the decoder's refusals are known,
	// and a dead letter of kind data can be right.
	KnowsTable bool
	// Spans limits the truth to these offsets of each partition; nil: it has all that was ever produced.
	Spans map[int32]Span

	topic   string
	list    []*Decision
	byPlace map[Place]*Decision
	many    map[Place]int // decisions of a record, by its place
	ordered bool
}

// NewTruth opens an empty truth about a source topic.
func NewTruth(topic string) *Truth {
	return &Truth{topic: topic, byPlace: make(map[Place]*Decision), many: make(map[Place]int)}
}

// Add writes down the decisions of one Kafka record, in order of their index. The same record twice panics.
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

// Len is the number of decisions.
func (t *Truth) Len() int { return len(t.list) }

// Decisions are all decisions in order of place.
func (t *Truth) Decisions() []*Decision {
	if !t.ordered {
		slices.SortFunc(t.list, func(a, b *Decision) int { return a.Place.Compare(b.Place) })
		t.ordered = true
	}
	return t.list
}

// At is the decision at a place as a forwarded record or a row has it; nil where nothing was produced there.
func (t *Truth) At(p Place) *Decision {
	if p.Index == envelope.NoIndex && t.many[Place{p.Topic, p.Partition, p.Offset, 0}] == 1 {
		p.Index = 0
	}
	return t.byPlace[p]
}

// Covers says whether the truth has something to say about a place.
func (t *Truth) Covers(p Place) bool {
	if t.Spans == nil {
		return true
	}
	s, ok := t.Spans[p.Partition]
	return ok && p.Topic == t.topic && p.Offset >= s.From && p.Offset < s.To
}
