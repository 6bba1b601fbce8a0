package kafka

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errNoRoom refuses a compressed set of records while the buffer is full. It is no fault: the client has not moved past the set
// and fetches it again.
var errNoRoom = errors.New("the buffer has no room for the set of records")

// room is what the buffer of a source has left. A set counts from the moment at which it is opened: first as what the client
// holds, and from the poll that brings its records on as what the queues hold.
type room struct {
	most   int64        // of the queues of all partitions and the client together, in bytes; 0 or less: no limit
	queued atomic.Int64 // in the queues
	opened atomic.Int64 // what the sets take that were opened since the last poll
	closed atomic.Bool  // a set was refused since the last poll: no other is opened in vain
}

// admit takes room for a set. One that finds the client empty gets in whatever it takes, as long as the queues are not full:
// no set is too large for the buffer that is not too large at all.
func (r *room) admit(bytes int64) bool {
	for {
		opened := r.opened.Load()
		if r.full() || r.most > 0 && opened > 0 && r.queued.Load()+opened+bytes > r.most {
			r.closed.Store(true)
			return false
		}
		if r.opened.CompareAndSwap(opened, opened+bytes) {
			return true
		}
	}
}

func (r *room) full() bool { return r.closed.Load() || r.most > 0 && r.queued.Load() >= r.most }

// polled says that the queues have what the client held.
func (r *room) polled() {
	r.opened.Store(0)
	r.closed.Store(false)
}

// What the client makes of a set beside its bytes, in bytes.
const (
	recordSize = int64(unsafe.Sizeof(kgo.Record{})+unsafe.Sizeof(&kgo.Record{})) * 5 / 4 // slices are rounded up, see [rounded]
	headerSize = int64(unsafe.Sizeof(kgo.RecordHeader{}))
)

// weigh is what a set that was inflated takes in memory with its records and their headers. On the wire a header may take two
// bytes and a record seven, so what a set inflates to says little. It ends where the client stops reading, at the first record
// that is broken.
func weigh(set []byte) int64 {
	sum := int64(len(set))
	if len(set) > 0 && set[0] == 0 {
		return sum + recordSize*messages(set)
	}
	for len(set) > 0 {
		length, n := binary.Varint(set)
		if n <= 0 || length <= 0 || length > int64(len(set)-n) {
			break
		}
		sum += recordSize + headerSize*headers(set[n:n+int(length)])
		set = set[n+int(length):]
	}
	return sum
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
