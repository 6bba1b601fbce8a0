package verify

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"
)

// Place is the place where a decision was first read. Index is its position inside its Kafka record. For a record
// with one decision, or an unreadable one, it is always 0 here.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
	Index     int
}

// String returns the place as topic/partition/offset/index.
func (p Place) String() string {
	return fmt.Sprintf("%s/%d/%d/%d", p.Topic, p.Partition, p.Offset, p.Index)
}

// Compare orders places by topic, partition, offset and index.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Topic, o.Topic), cmp.Compare(p.Partition, o.Partition),
		cmp.Compare(p.Offset, o.Offset), cmp.Compare(p.Index, o.Index))
}

// record returns the place of the whole Kafka record.
func (p Place) record() Place { p.Index = 0; return p }

// in returns the partition of the place.
func (p Place) in() Partition { return Partition{p.Topic, p.Partition} }

// Partition is a partition of a source topic. There is one source topic for each lane.
type Partition struct {
	Topic  string
	Number int32
}

// String returns the partition as topic/partition.
func (p Partition) String() string { return fmt.Sprintf("%s/%d", p.Topic, p.Number) }

// Compare orders partitions by topic and number.
func (p Partition) Compare(o Partition) int {
	return cmp.Or(cmp.Compare(p.Topic, o.Topic), cmp.Compare(p.Number, o.Number))
}

// Offsets are offsets in partitions of source topics.
type Offsets map[Partition]int64

// Add adds the offsets of a topic.
func (o Offsets) Add(topic string, of map[int32]int64) {
	for p, offset := range of {
		o[Partition{topic, p}] = offset
	}
}

// Identity identifies a decision in the table: decision_id and ts, in UTC and cut to microseconds.
type Identity struct {
	ID   string
	Time time.Time
}

// identity makes times comparable.
func identity(id string, at time.Time) Identity {
	return Identity{id, at.UTC().Truncate(time.Microsecond)}
}

// Sum identifies the exact bytes of a key or a value, and tells null from empty: that of null is the zero Sum.
type Sum [16]byte

// SumOf is the Sum of b.
func SumOf(b []byte) Sum {
	if b == nil {
		return Sum{}
	}
	whole := sha256.Sum256(b)
	return Sum(whole[:16])
}
