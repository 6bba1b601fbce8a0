package kafka

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// spare keeps the memory of records that are done with for records that come. What is asked of it and what is given to
// it is the client's doing alone: it gives a slab back once every record in it was recycled, and only [home.Batch.Release]
// recycles. A record that nobody recycles leaves its slab to the garbage collector.
type spare struct {
	inflated int // bytes that a set may inflate to
	bytes    slabs[byte]
	records  slabs[kgo.Record]
}

var (
	_ kgo.PoolDecompressBytes = (*spare)(nil)
	_ kgo.PoolRecords         = (*spare)(nil)
)

// spareBytes is what the spare keeps of inflated bytes while nobody uses them; of records, a quarter of it.
const spareBytes = 8 << 20

// newSpare makes one for sets that may inflate to so many bytes.
func newSpare(inflated int) *spare {
	s := &spare{inflated: inflated}
	s.bytes.most, s.records.most = spareBytes, spareBytes/4
	return s
}

// GetDecompressBytes is of [kgo.PoolDecompressBytes]: the guess for codecs that [inflater] leaves to the client.
func (s *spare) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	return s.bytes.take(min(4*len(compressed), s.inflated))
}

// fitted is what a set was inflated to, in a smaller slice where it took less than half of the one that it was given. It
// lives for as long as its records wait, and they count as what they are.
func (s *spare) fitted(out []byte) []byte {
	if cap(out)/2 <= len(out)+littleRoom {
		return out
	}
	fitting := append(s.bytes.take(len(out)), out...)
	s.bytes.give(out)
	return fitting
}

// littleRoom is not worth a second slice, in bytes.
const littleRoom = 1 << 10

// PutDecompressBytes is of [kgo.PoolDecompressBytes].
func (s *spare) PutDecompressBytes(b []byte) {
	if rubbish {
		for i := range b[:cap(b)] {
			b[:cap(b)][i] = 0xDB
		}
	}
	s.bytes.give(b)
}

// GetRecords is of [kgo.PoolRecords].
func (s *spare) GetRecords(n int) []kgo.Record { return s.records.take(n) }

// PutRecords is of [kgo.PoolRecords].
func (s *spare) PutRecords(r []kgo.Record) {
	clear(r[:cap(r)]) // those that the client left out were not recycled
	s.records.give(r)
}

// slabs are slices that wait to be used again, the latest last.
type slabs[T any] struct {
	most int          // bytes to keep
	made atomic.Int64 // bytes that no spare slice had room for

	mu   sync.Mutex
	free [][]T
	kept int // bytes
}

// mostSlabs is how many slices are kept at most, so that looking for one stays cheap.
const mostSlabs = 128

// take returns a slice with room for n, a spare one where one fits and is not much too large.
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

// give keeps a slice, and lets go of those that nobody asked for longest where there are too many.
func (s *slabs[T]) give(slab []T) {
	size := sizeOf(slab)
	if size == 0 || size > s.most/2 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.free) >= mostSlabs || s.kept+size > s.most {
		s.remove(0)
	}
	s.free, s.kept = append(s.free, slab[:0]), s.kept+size
}

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

// rounded is n up to the next of four sizes between two powers of two: the fewer sizes there are, the more often one fits.
func rounded(n int) int {
	step := 1 << max(bits.Len(uint(n))-3, 0)
	return (n + step - 1) &^ (step - 1)
}
