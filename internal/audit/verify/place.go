package verify

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"
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

// Compare orders places by topic, partition, offset and index.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Topic, o.Topic), cmp.Compare(p.Partition, o.Partition),
		cmp.Compare(p.Offset, o.Offset), cmp.Compare(p.Index, o.Index))
}

// record is the place of the whole Kafka record.
func (p Place) record() Place { p.Index = 0; return p }

// Identity is what makes two decisions one for the table: decision_id and ts, in UTC and cut to microseconds.
type Identity struct {
	ID   string
	Time time.Time
}

// identity makes times comparable.
func identity(id string, at time.Time) Identity {
	return Identity{id, at.UTC().Truncate(time.Microsecond)}
}

// Sum stands for the exact bytes of a key or a value and tells null from empty: that of null is the zero Sum.
type Sum [16]byte

// SumOf is the Sum of b.
func SumOf(b []byte) Sum {
	if b == nil {
		return Sum{}
	}
	whole := sha256.Sum256(b)
	return Sum(whole[:16])
}
