package kafka

import (
	"encoding/binary"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Memory that the client needs for a set besides its bytes, in bytes.
const (
	recordSize = int64(unsafe.Sizeof(kgo.Record{})+unsafe.Sizeof(&kgo.Record{})) * 5 / 4 // slices are rounded up, see [rounded]
	headerSize = int64(unsafe.Sizeof(kgo.RecordHeader{}))
)

// weigh returns the memory of an inflated set with its headers, and its number of records, which take recordSize
// each. On the wire a header may take two bytes and a record seven, so the inflated size says little. It stops at the
// first broken record, as the client does.
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

// headers returns the number of headers that a record claims, 0 if it is broken before that.
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

// messages counts the messages of a set in a format before Kafka 0.11: offset, size, message. In today's sets the
// first byte is the length of a record and not 0. In old ones it is the high byte of an offset.
func messages(set []byte) (n int64) {
	const head, least = 12, 14 // bytes before a message, and of a message
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
