package kafka

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// hand counts the bytes of records that handlers work on, over all partitions of a session.
type hand struct {
	mu    sync.Mutex
	bytes int64
	freed chan struct{} // closed when memory is freed; nil: nobody waits
}

func (h *hand) free(bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes -= bytes
	if h.freed != nil {
		close(h.freed)
		h.freed = nil
	}
}

// allowed returns how many more bytes a partition may take that has own bytes in hand. While BufferBytes are in hand
// it is half of the partition's share. So each partition can have a batch, even if many wait with one. The caller has
// h.mu.
func (s *session) allowed(own int64) int64 {
	buffer := s.source.sc.BufferBytes
	return max(buffer/2/max(s.sharing.Load(), 1)-own, buffer-s.hand.bytes)
}

// crowded returns a channel to wait on while a record is too large beside those in hand, nil if it is not. A
// partition with nothing in hand may exceed its limit.
func (s *session) crowded(r *kgo.Record, own int64) <-chan struct{} {
	size := recordBytes(r)
	h := &s.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes == 0 || size <= s.allowed(own) || own == 0 && h.bytes+size <= s.source.sc.BufferBytes*3/2 {
		return nil
	}
	if h.freed == nil {
		h.freed = make(chan struct{})
	}
	return h.freed
}

// grant takes memory in hand for records from the front of the queue, at least one. It returns their number, the
// bytes they may take and the bytes they do take.
func (s *session) grant(queue []*kgo.Record, records int, bytes, own int64) (n int, most, granted int64) {
	h := &s.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	most = min(bytes, s.allowed(own))
	n, _ = fit(queue, records, most)
	for _, r := range queue[:n] {
		granted += recordBytes(r)
	}
	h.bytes += granted
	return n, most, granted
}

// detach copies records out of their sets, all into one piece of memory. One record keeps all of its set alive.
func detach(records []*kgo.Record) {
	size := 0
	for _, r := range records {
		size += len(r.Key) + len(r.Value)
		for _, h := range r.Headers {
			size += len(h.Value)
		}
	}
	piece, own := make([]byte, 0, size), make([]kgo.Record, len(records))
	move := func(v []byte) []byte {
		switch {
		case v == nil:
			return nil
		case len(v) == 0:
			return []byte{} // a slice of v would keep its set alive
		}
		from := len(piece)
		piece = append(piece, v...)
		return piece[from:len(piece):len(piece)]
	}
	for i, r := range records {
		own[i] = *r
		o := &own[i]
		o.Context = nil // the client's context leads to the set
		o.Key, o.Value, o.Headers = move(r.Key), move(r.Value), slices.Clone(r.Headers)
		for j, h := range o.Headers {
			o.Headers[j] = kgo.RecordHeader{Key: strings.Clone(h.Key), Value: move(h.Value)}
		}
		r.Recycle()
		records[i] = o
	}
}

// grant returns how many records come next within these limits, and how many bytes they may take. It counts them in
// hand. The caller has a.mu.
func (a *Assignment) grant(records int, bytes int64) (n int, most int64) {
	n, most, granted := a.session.grant(a.queue, records, bytes, a.inHand)
	a.inHand += granted
	return n, most
}

// finishTaken gives back the memory of all taken records.
func (a *Assignment) finishTaken() { a.Done(math.MaxInt64) }

// Done gives back the memory of taken records that are done. bytes is their sum by [RecordBytes].
func (a *Assignment) Done(bytes int64) {
	a.mu.Lock()
	bytes = min(bytes, a.inHand)
	lent := min(bytes, a.lent)
	a.session.source.room.lent.Add(-lent)
	a.inHand, a.lent = a.inHand-bytes, a.lent-lent
	a.mu.Unlock()
	if bytes > 0 {
		a.session.hand.free(bytes)
	}
}

// Allowed returns how many bytes the records in hand may grow to once they are opened: at least 1.
func (a *Assignment) Allowed() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &a.session.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(1, a.inHand+a.session.allowed(a.inHand))
}
