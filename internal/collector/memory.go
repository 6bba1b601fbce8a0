package collector

import (
	"sync"
	"sync/atomic"
	"time"
)

// budget is the memory of all uploads together, in bytes. Nobody waits for it. An upload that is refused memory gives all
// of its memory back. So uploads that have half of their memory cannot block each other.
type budget struct {
	most int64
	used atomic.Int64
}

func (b *budget) take(n int64) bool {
	for {
		used := b.used.Load()
		if n > b.most-used {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// share is what one upload has of the budget. The uploads of a client may have a quarter of it together, for the time [waits] after
// another client was refused some. One upload alone may have all.
type share struct {
	*budget
	held   int64
	name   string // of the client, whose share is counted from join on
	client *client
	places *places
	now    func() time.Time
}

// join counts the share as one of the client's.
func (s *share) join(name string, of *client, places *places, now func() time.Time) {
	s.name, s.client, s.places, s.now = name, of, places, now
}

// take asks for n bytes more.
func (s *share) take(n int64) *refusal {
	switch {
	case s.try(n):
		return nil
	case s.held+n > s.most:
		return refuse(reasonMemorySize, 0) // alone it would not fit either
	}
	if n > s.most-s.used.Load() { // else its own uploads have too much
		s.places.hunger(s.name, s.now())
	}
	return refuse(reasonMemory, 0)
}

// try takes n bytes more, if it may. It does not note that the client waits for memory.
func (s *share) try(n int64) bool {
	if s.beyond(n) || !s.budget.take(n) {
		return false
	}
	s.held += n
	s.client.memory.Add(n)
	return true
}

// beyond reports whether n bytes more are for others.
func (s *share) beyond(n int64) bool {
	all := s.client.memory.Load()
	return all > s.held && all+n > s.most/4 && s.places.othersHunger(s.name, s.now())
}

func (s *share) give(n int64) {
	s.held -= n
	s.client.memory.Add(-n)
	s.used.Add(-n)
}

const (
	// leastBuffer is the room that a buffer begins with: an upload of OPA's default size, 32 KiB, fits.
	leastBuffer = 33 << 10
	// mostKept is the largest buffer that is kept for the next upload.
	mostKept = 1 << 20
)

// buffers are kept from one upload to the next. Large ones are kept apart: bodies as received would waste the large
// buffers of inflated ones. A kept buffer is in no share, and the garbage collector may take it.
var buffers, largeBuffers sync.Pool

func shelf(room int64) *sync.Pool {
	if room > 2*leastBuffer {
		return &largeBuffers
	}
	return &buffers
}

// buffer is room of a share's, with n bytes where there is memory for them, and leastBuffer in any case.
func (s *share) buffer(n int64) ([]byte, *refusal) {
	if kept, ok := shelf(n).Get().(*[]byte); ok && int64(cap(*kept)) >= n && s.try(int64(cap(*kept))) {
		return (*kept)[:0], nil
	}
	if n > leastBuffer && s.try(n) {
		return make([]byte, 0, n), nil // a guess is not worth a refusal
	}
	if r := s.take(leastBuffer); r != nil {
		return nil, r
	}
	return make([]byte, 0, leastBuffer), nil
}

// grow gives b more room, at least n bytes in all where most allows it. For a moment both are in memory, and in the share.
func (s *share) grow(b []byte, n, most int64) ([]byte, *refusal) {
	n = min(max(n, 2*int64(cap(b))), most)
	if r := s.take(n); r != nil {
		return b, r
	}
	grown := make([]byte, len(b), n)
	copy(grown, b)
	s.drop(b)
	return grown, nil
}

// drop gives the room of b back. Nobody may look at it any more.
func (s *share) drop(b []byte) {
	s.give(int64(cap(b)))
	if cap(b) > 0 && cap(b) <= mostKept {
		b = b[:0]
		shelf(int64(cap(b))).Put(&b)
	}
}
