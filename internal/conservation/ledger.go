package conservation

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"docket/internal/envelope"
)

// Place is where a decision was first read. Index is its place inside its Kafka record; that of a record that is one
// decision, or none that can be read, is 0 here, whatever index it is forwarded with.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
	Index     int
}

// String is the place as topic/partition/offset/index.
func (p Place) String() string {
	return fmt.Sprintf("%s/%d/%d/%d", p.Topic, p.Partition, p.Offset, p.Index)
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition),
		cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index))
}

// identity is what makes two decisions the same for the table.
type identity struct {
	id string
	at time.Time
}

// Ledger is the truth: what was produced, and where the broker put it. It is safe for concurrent use.
type Ledger struct {
	mu        sync.Mutex
	records   map[Place]*Record // Index 0
	decisions int
}

// NewLedger opens an empty ledger.
func NewLedger() *Ledger { return &Ledger{records: make(map[Place]*Record)} }

// Acknowledged writes down that the broker has r at this place. The same place twice is a bug of the caller and panics.
func (l *Ledger) Acknowledged(topic string, partition int32, offset int64, r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := Place{Topic: topic, Partition: partition, Offset: offset}
	if _, taken := l.records[at]; taken || len(r.Decisions) == 0 {
		panic(fmt.Sprintf("conservation: %v acknowledged twice or without decisions", at))
	}
	l.records[at] = &r
	l.decisions += len(r.Decisions)
}

// Records is the number of Kafka records that were acknowledged.
func (l *Ledger) Records() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// Canonical is the place of a decision as the ledger has it, whatever index it is forwarded with; false where nothing
// was produced there.
func (l *Ledger) Canonical(p Place) (Place, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.canonical(p)
}

// Each calls f with every decision in order of place, and with the key of its record.
func (l *Ledger) Each(f func(at Place, key []byte, d Decision)) {
	l.mu.Lock()
	list, _ := l.entries()
	l.mu.Unlock()
	for _, e := range list {
		f(e.place, e.record.Key, *e.decision())
	}
}

// Decisions is the number of decisions in them; a record that cannot be read counts as one.
func (l *Ledger) Decisions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decisions
}

// entry is a decision of the ledger and what was found of it.
type entry struct {
	place  Place
	record *Record
	index  int
	found
}

func (e *entry) decision() *Decision { return &e.record.Decisions[e.index] }

// named is the decision's id, or the key of a record that cannot be read.
func (e *entry) named() string {
	if id := e.decision().ID; id != "" {
		return id
	}
	return string(e.record.Key)
}

// canonical is the place of a decision as the ledger has it; false where nothing was produced there.
func (l *Ledger) canonical(p Place) (Place, bool) {
	r, ok := l.records[Place{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset}]
	if !ok {
		return p, false
	}
	if len(r.Decisions) == 1 && p.Index == envelope.NoIndex {
		p.Index = 0
	}
	return p, p.Index >= 0 && p.Index < len(r.Decisions)
}

// entries lists all decisions in order of place, and by place.
func (l *Ledger) entries() ([]*entry, map[Place]*entry) {
	list, byPlace := make([]*entry, 0, l.decisions), make(map[Place]*entry, l.decisions)
	for at, r := range l.records {
		for i := range r.Decisions {
			e := &entry{place: at, record: r, index: i}
			e.place.Index = i
			list, byPlace[e.place] = append(list, e), e
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return comparePlaces(a.place, b.place) })
	return list, byPlace
}
