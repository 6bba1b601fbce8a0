package conservation

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"docket/internal/audit/verify"
	"docket/internal/record/envelope"
)

// Produced has the records that were produced, and their places. It is safe for concurrent use.
type Produced struct {
	mu        sync.Mutex
	records   map[Place]*Record // Index 0
	decisions int
}

// NewProduced makes an empty Produced.
func NewProduced() *Produced { return &Produced{records: make(map[Place]*Record)} }

// Acknowledged notes that the broker has r at this place. A repeated place is a bug of the caller and panics.
func (l *Produced) Acknowledged(topic string, partition int32, offset int64, r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := Place{Topic: topic, Partition: partition, Offset: offset}
	if _, taken := l.records[at]; taken || len(r.Decisions) == 0 {
		panic(fmt.Sprintf("conservation: %v acknowledged twice or without decisions", at))
	}
	if r.Reached.IsZero() {
		r.Reached = time.Now()
	}
	l.records[at] = &r
	l.decisions += len(r.Decisions)
}

// At returns the record at this place; false if none was acknowledged.
func (l *Produced) At(topic string, partition int32, offset int64) (Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.records[Place{Topic: topic, Partition: partition, Offset: offset}]
	if !ok {
		return Record{}, false
	}
	return *r, true
}

// Records returns the number of acknowledged Kafka records.
func (l *Produced) Records() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// Canonical returns the place of a decision with its usual index, for any index with which it is forwarded; false if
// nothing was produced there.
func (l *Produced) Canonical(p Place) (Place, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.canonical(p)
}

// Each calls f with every decision in order of place, and with the key of its record.
func (l *Produced) Each(f func(at Place, key []byte, d Decision)) {
	l.mu.Lock()
	records := maps.Clone(l.records)
	l.mu.Unlock()
	for _, at := range slices.SortedFunc(maps.Keys(records), Place.Compare) {
		for i, d := range records[at].Decisions {
			f(Place{Topic: at.Topic, Partition: at.Partition, Offset: at.Offset, Index: i}, records[at].Key, d)
		}
	}
}

// Decisions returns the number of decisions; an unreadable record counts as one.
func (l *Produced) Decisions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decisions
}

// Truth returns the present content for the checker.
func (l *Produced) Truth() *verify.Truth {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := verify.NewTruth()
	t.KnowsTable = true
	for at, r := range l.records {
		t.Add(r.truth(at)...)
	}
	return t
}

// Judged returns a copy with another code for every decision, for a table with rules of its own.
func (l *Produced) Judged(code func(Place, Decision) string) *Produced {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := &Produced{records: make(map[Place]*Record, len(l.records)), decisions: l.decisions}
	for at, r := range l.records {
		judged := *r
		judged.Decisions = slices.Clone(r.Decisions)
		for i := range judged.Decisions {
			judged.Decisions[i].Code = code(Place{Topic: at.Topic, Partition: at.Partition, Offset: at.Offset, Index: i}, judged.Decisions[i])
		}
		own.records[at] = &judged
	}
	return own
}

// truth returns the decisions of the record at a place.
func (r *Record) truth(at Place) []verify.Decision {
	ds := make([]verify.Decision, len(r.Decisions))
	key := verify.SumOf(r.Key)
	for i := range r.Decisions {
		d := &r.Decisions[i]
		at.Index = i
		ds[i] = verify.Decision{
			Place: at, ID: d.ID, Time: d.Time, Key: key, KeyText: string(r.Key),
			Value: verify.SumOf(r.forwarded(i)), Body: d.Body, Code: d.Code, Reached: r.Reached,
		}
	}
	return ds
}

// canonical is Canonical without the lock.
func (l *Produced) canonical(p Place) (Place, bool) {
	r, ok := l.records[Place{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset}]
	if !ok {
		return p, false
	}
	if len(r.Decisions) == 1 && p.Index == envelope.NoIndex {
		p.Index = 0
	}
	return p, p.Index >= 0 && p.Index < len(r.Decisions)
}
