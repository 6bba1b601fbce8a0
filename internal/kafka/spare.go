package kafka

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/twmb/franz-go/pkg/kgo"
)

// spare keeps the memory of finished records for new ones. Only the client takes and returns memory. It returns a
// slab once every record in it was recycled, and only [home.Batch.Release] recycles. A slab with a record that is not
// recycled is left to the garbage collector.
type spare struct {
	inflated int // limit of an inflated set in bytes
	room     *room
	bytes    slabs[byte]
	records  slabs[kgo.Record]
}

var (
	_ kgo.PoolDecompressBytes = (*spare)(nil)
	_ kgo.PoolRecords         = (*spare)(nil)
)

// spareBytes is how many inflated bytes the spare keeps unused; for records it keeps a quarter of that.
const spareBytes = 8 << 20

// newSpare makes a spare for sets that inflate to at most this many bytes. The room counts them.
func newSpare(inflated int, r *room) *spare {
	s := &spare{inflated: inflated, room: r}
	s.keep(spareBytes)
	s.bytes.used, s.records.used = &r.made, &r.made
	return s
}

// keep sets how many inflated bytes the spare keeps unused.
func (s *spare) keep(bytes int) { s.bytes.most, s.records.most = bytes, bytes/4 }

// GetDecompressBytes implements [kgo.PoolDecompressBytes]: the first guess for codecs that [inflater] leaves to the
// client.
func (s *spare) GetDecompressBytes(compressed []byte, codec kgo.CompressionCodecType) []byte {
	guess := 4 * len(compressed)
	if codec == kgo.CodecGzip {
		guess = max(guess, gzipped(compressed)+bytes.MinRead) // otherwise the client would double it to see its end
	}
	return s.bytes.take(min(guess, s.inflated+bytes.MinRead))
}

// gzipped returns the inflated size that a gzip file gives, 0 if that is impossible (RFC 1952, ISIZE).
func gzipped(src []byte) int {
	const farthest = 1032 // a byte of deflate stands for at most this many bytes
	if len(src) < 4 {
		return 0
	}
	size := int64(binary.LittleEndian.Uint32(src[len(src)-4:]))
	if size > farthest*int64(len(src)) {
		return 0
	}
	return int(size)
}

// fitted copies an inflated set into a smaller slice if it took less than half of the given one. The set lives as
// long as its records wait, and they count with the bytes that they have.
func (s *spare) fitted(out []byte) []byte {
	if cap(out)/2 <= len(out)+littleRoom {
		return out
	}
	fitting := append(s.bytes.take(len(out)), out...)
	s.bytes.give(out)
	return fitting
}

// littleRoom is too small for a second slice, in bytes.
const littleRoom = 1 << 10

// PutDecompressBytes implements [kgo.PoolDecompressBytes].
func (s *spare) PutDecompressBytes(b []byte) {
	if poison {
		for i := range b[:cap(b)] {
			b[:cap(b)][i] = 0xDB
		}
	}
	s.bytes.give(b)
}

// GetRecords implements [kgo.PoolRecords]. An inflated set was promised the room for its records. Without a promise the
// set came uncompressed, and the client has it already. Then it waits for room.
func (s *spare) GetRecords(n int) []kgo.Record {
	bytes := int64(n) * recordSize
	if !s.room.promised(int64(n)) {
		s.room.await(bytes)
		s.room.made.Add(bytes)
	}
	slab := s.records.take(n)
	s.records.use(slab, bytes)
	s.room.made.Add(-bytes)
	return slab
}

// PutRecords implements [kgo.PoolRecords].
func (s *spare) PutRecords(r []kgo.Record) {
	clear(r[:cap(r)]) // records that the client left out were not recycled
	s.records.give(r)
}

// slabs keeps slices for reuse, the latest last.
type slabs[T any] struct {
	most int          // limit of the kept bytes
	made atomic.Int64 // bytes allocated because no spare slice was large enough
	used *atomic.Int64

	mu   sync.Mutex
	free [][]T
	kept int                               // bytes
	uses map[weak.Pointer[T]]*atomic.Int64 // bytes that each slice in use counts for
}

// mostSlabs limits the number of kept slices, so that the search for one stays cheap.
const mostSlabs = 128

// take returns a slice with room for n: a spare one if one fits and is not much too large.
func (s *slabs[T]) take(n int) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := -1
	for i, slab := range s.free {
		if cap(slab) >= n && cap(slab)/2 <= n && (best < 0 || cap(slab) <= cap(s.free[best])) {
			best = i
		}
	}
	if best < 0 {
		slab := make([]T, 0, rounded(n))
		s.made.Add(int64(sizeOf(slab)))
		return slab
	}
	slab := s.free[best]
	s.remove(best)
	return slab
}

// give keeps a slice. If there are too many, it frees those that were unused for longest. A slice that is not kept
// counts until the garbage collector has freed it.
func (s *slabs[T]) give(slab []T) {
	if !s.keeps(slab) {
		return
	}
	size := sizeOf(slab)
	at := weak.Make(&slab[:1][0])
	s.mu.Lock()
	defer s.mu.Unlock()
	if count := s.uses[at]; count != nil {
		s.used.Add(-count.Swap(0))
	}
	for len(s.free) >= mostSlabs || s.kept+size > s.most {
		s.remove(0)
	}
	s.free, s.kept = append(s.free, slab[:0]), s.kept+size
}

// use counts a slice in use, until it is given back to be kept or the garbage collector frees it.
func (s *slabs[T]) use(slab []T, bytes int64) {
	if cap(slab) == 0 {
		return
	}
	first := &slab[:1][0]
	at := weak.Make(first)
	s.mu.Lock()
	count := s.uses[at]
	if count == nil {
		if s.uses == nil {
			s.uses = make(map[weak.Pointer[T]]*atomic.Int64)
		}
		count = new(atomic.Int64)
		s.uses[at] = count
		runtime.AddCleanup(first, s.gone, at)
	}
	s.mu.Unlock()
	s.used.Add(bytes - count.Swap(bytes))
}

// gone is called when the garbage collector freed a slice.
func (s *slabs[T]) gone(at weak.Pointer[T]) {
	s.mu.Lock()
	count := s.uses[at]
	delete(s.uses, at)
	s.mu.Unlock()
	s.used.Add(-count.Load())
}

// keeps reports whether a slice is worth keeping: no slice may take the place of all others.
func (s *slabs[T]) keeps(slab []T) bool { return cap(slab) > 0 && sizeOf(slab) <= s.most/2 }

func (s *slabs[T]) remove(i int) {
	s.kept -= sizeOf(s.free[i])
	last := len(s.free) - 1
	copy(s.free[i:], s.free[i+1:])
	s.free[last] = nil
	s.free = s.free[:last]
}

func sizeOf[T any](slab []T) int {
	var one T
	return cap(slab) * int(unsafe.Sizeof(one))
}

// rounded rounds n up to the next of four sizes between two powers of two. With fewer sizes, slices fit more often.
func rounded(n int) int {
	step := 1 << max(bits.Len(uint(n))-3, 0)
	return (n + step - 1) &^ (step - 1)
}
