package frame

import (
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/record/escape"
)

// Position is where a record is in Kafka.
type Position struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"`
	Index     *int       `json:"index,omitempty"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
}

// UTC is a time in JSON, by [escape.Time]; nil: there is none.
func UTC(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = escape.Time(t)
	return &t
}

// PositionOf is where a record was first read.
func PositionOf(o envelope.Origin) Position {
	p := Position{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, Timestamp: UTC(o.Timestamp)}
	if o.Index != envelope.NoIndex {
		p.Index = &o.Index
	}
	return p
}

// FoundAt is where a dead letter was found.
func FoundAt(f ledger.Found) Position {
	return Position{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Timestamp: UTC(f.Stamp)}
}

// List is every list.
type List[T any] struct {
	Entries []T    `json:"entries"`
	Next    string `json:"next"`
}

// ListOf makes a list of other values.
func ListOf[From, To any](from []From, next string, of func(From) To) List[To] {
	l := List[To]{Entries: make([]To, 0, len(from)), Next: next}
	for _, f := range from {
		l.Entries = append(l.Entries, of(f))
	}
	return l
}
