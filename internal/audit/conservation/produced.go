package conservation

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"docket/internal/audit/verify"
	"docket/internal/record/envelope"
)

// Produced is the truth: the records that were produced, and where the broker put each. It is safe for concurrent use.
type Produced struct {
	mu        sync.Mutex
	records   map[Place]*Record // Index 0
	decisions int
}

// NewProduced returns one without records.
func NewProduced() *Produced { return &Produced{records: make(map[Place]*Record)} }

// Acknowledged writes down that the broker has r at this place. The same place twice is a bug of the caller and panics.
func (l *Produced) Acknowledged(topic string, partition int32, offset int64, r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := Place{Topic: topic, Partition: partition, Offset: offset}
	if _, taken := l.records[at]; taken || len(r.Decisions) == 0 {
		panic(fmt.Sprintf("conservation: %v acknowledged twice or without decisions", at))
	}
	l.records[at] = &r
	l.decisions += len(r.Decisions)
}

// At is the record that the broker has at this place; false where none was acknowledged.
func (l *Produced) At(topic string, partition int32, offset int64) (Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.records[Place{Topic: topic, Partition: partition, Offset: offset}]
	if !ok {
		return Record{}, false
	}
	return *r, true
}

// Records is the number of Kafka records that were acknowledged.
func (l *Produced) Records() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// Canonical is the place of a decision as the ledger has it, whatever index it is forwarded with; false where nothing
// was produced there.
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

// Decisions is the number of decisions in them; a record that cannot be read counts as one.
func (l *Produced) Decisions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decisions
}

// Truth is what the ledger has now, for the checker.
func (l *Produced) Truth() *verify.Truth {
	l.mu.Lock()
	defer l.mu.Unlock()
	var topic string
	for at := range l.records {
		topic = at.Topic
		break
	}
	t := verify.NewTruth(topic)
	t.KnowsTable = true
	for at, r := range l.records {
		t.Add(r.truth(at)...)
	}
	return t
}

// Judged is the same with another code for every decision, as a table with rules of its own deserves it.
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

// truth is what the record at a place deserves.
func (r *Record) truth(at Place) []verify.Decision {
	ds := make([]verify.Decision, len(r.Decisions))
	key := verify.SumOf(r.Key)
	for i := range r.Decisions {
		d := &r.Decisions[i]
		at.Index = i
		ds[i] = verify.Decision{
			Place: at, ID: d.ID, Time: d.Time, Key: key, KeyText: string(r.Key),
			Value: verify.SumOf(r.forwarded(i)), Body: d.Body, Code: d.Code,
		}
	}
	return ds
}

// canonical is the place of a decision as the ledger has it; false where nothing was produced there.
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
