package kafka

import (
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// hand counts the batches that handlers fetched and work on, over all partitions of a session.
type hand struct {
	mu    sync.Mutex
	bytes int64
	freed chan struct{} // closed when there is less; nil: nobody waits
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

// allowed is how many bytes a batch may have. While BufferBytes are in hand it is half of a partition's share of them, so that
// each partition has a batch however many wait with one. The caller has h.mu.
func (s *session) allowed() int64 {
	buffer := s.source.sc.BufferBytes
	return max(buffer/2/max(s.sharing.Load(), 1), buffer-s.hand.bytes)
}

// crowded returns a channel to wait for while a record is too large to be taken beside what is in hand, nil when it is not.
func (s *session) crowded(r *kgo.Record) <-chan struct{} {
	size := recordBytes(r)
	h := &s.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes == 0 || size <= s.allowed() || h.bytes+size <= s.source.sc.BufferBytes*3/2 {
		return nil
	}
	if h.freed == nil {
		h.freed = make(chan struct{})
	}
	return h.freed
}

// grant takes room in hand for a batch from the front of the queue, of at least one record, and says how many bytes it may take and
// how many its records have.
func (s *session) grant(queue []*kgo.Record, records int, bytes int64) (n int, most, granted int64) {
	h := &s.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	most = min(bytes, s.allowed())
	n, _ = fit(queue, records, most)
	for _, r := range queue[:n] {
		granted += recordBytes(r)
	}
	h.bytes += granted
	return n, most, granted
}

// detach copies records out of the sets that they came in, all into one piece of memory: one record keeps all of its set.
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
			return []byte{} // a slice of v would keep its set
		}
		from := len(piece)
		piece = append(piece, v...)
		return piece[from:len(piece):len(piece)]
	}
	for i, r := range records {
		own[i] = *r
		o := &own[i]
		o.Context = nil // that of the client leads to the set
		o.Key, o.Value, o.Headers = move(r.Key), move(r.Value), slices.Clone(r.Headers)
		for j, h := range o.Headers {
			o.Headers[j] = kgo.RecordHeader{Key: strings.Clone(h.Key), Value: move(h.Value)}
		}
		r.Recycle()
		records[i] = o
	}
}

// grant says how many records the next batch has and how many bytes it may take, and counts it in hand. The caller has a.mu.
func (a *Assignment) grant() (n int, most int64) {
	sc := a.session.source.sc
	n, most, a.inHand = a.session.grant(a.queue, sc.BatchRecords, sc.BatchBytes)
	return n, most
}

// putDown says that the batch that Fetch took last is done with.
func (a *Assignment) putDown() {
	a.mu.Lock()
	bytes := a.inHand
	a.session.source.room.lent.Add(-a.lent)
	a.inHand, a.lent = 0, 0
	a.mu.Unlock()
	if bytes > 0 {
		a.session.hand.free(bytes)
	}
}
