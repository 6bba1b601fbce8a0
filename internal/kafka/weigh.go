package kafka

import (
	"encoding/binary"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What the client makes of a set beside its bytes, in bytes.
const (
	recordSize = int64(unsafe.Sizeof(kgo.Record{})+unsafe.Sizeof(&kgo.Record{})) * 5 / 4 // slices are rounded up, see [rounded]
	headerSize = int64(unsafe.Sizeof(kgo.RecordHeader{}))
)

// weigh is what a set that was inflated takes in memory with its headers, and how many records it has, which take recordSize each. On the wire a header may take two
// bytes and a record seven, so what a set inflates to says little. It ends where the client stops reading, at the first record
// that is broken.
func weigh(set []byte) (sum, records int64) {
	sum = int64(len(set))
	if len(set) > 0 && set[0] == 0 {
		return sum, messages(set)
	}
	for len(set) > 0 {
		length, n := binary.Varint(set)
		if n <= 0 || length <= 0 || length > int64(len(set)-n) {
			break
		}
		records++
		sum += headerSize * headers(set[n:n+int(length)])
		set = set[n+int(length):]
	}
	return sum, records
}

// headers is how many headers a record says that it has, 0 where it is broken before that.
func headers(record []byte) int64 {
	at := 1 // behind the attributes
	skip := func() (int64, bool) {
		if at >= len(record) {
			return 0, false
		}
		v, n := binary.Varint(record[at:])
		at += max(n, 0)
		return v, n > 0
	}
	for range 2 { // timestamp and offset
		if _, ok := skip(); !ok {
			return 0
		}
	}
	for range 2 { // key and value
		length, ok := skip()
		if !ok || length > int64(len(record)-at) {
			return 0
		}
		at += int(max(length, 0))
	}
	n, ok := skip()
	if !ok || n > int64(len(record)) {
		return 0
	}
	return max(n, 0)
}

// messages is how many messages a set of the formats before Kafka 0.11 has: offset, size, message. Where the first byte of a
// set of today is the length of a record, and not 0, such a set has the high byte of an offset.
func messages(set []byte) (n int64) {
	const head, least = 12, 14 // bytes, of what comes before a message and of a message
	for len(set) > head {
		size := int64(binary.BigEndian.Uint32(set[8:]))
		n++
		if size < least || size > int64(len(set)-head) {
			break
		}
		set = set[head+size:]
	}
	return n
}
