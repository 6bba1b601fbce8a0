package kafka

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// hand counts the bytes of records that handlers work on, over all partitions of a session.
type hand struct {
	mu    sync.Mutex
	bytes int64
	freed chan struct{} // closed when a record that waits may have its turn; nil: nobody waits
	line  []*Assignment // with a record beyond the limits: the first may take it, the others wait for it
	large int64         // bytes of that record once the first of line took it
}

// free gives back the memory of records of a, which has left bytes in hand. A record beyond the limits is done at the
// latest when its partition has less in hand than it takes. If as many bytes were given back, the next one finds room in any case.
func (s *session) free(a *Assignment, bytes, left int64) {
	h := &s.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes -= bytes
	if h.large > 0 && (h.bytes <= s.source.sc.BufferBytes || h.line[0] == a && (left < h.large || bytes >= h.large)) {
		h.line, h.large = slices.Delete(h.line, 0, 1), 0
	}
	h.leave(a)
	h.wake()
}

// leave takes a partition that waits out of the line. The caller has h.mu.
func (h *hand) leave(a *Assignment) {
	if i := slices.Index(h.line, a); i > 0 || i == 0 && h.large == 0 {
		h.line = slices.Delete(h.line, i, i+1)
		h.wake()
	}
}

// quit takes a out of the line, where it waits for nothing any more.
func (a *Assignment) quit() {
	h := &a.session.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave(a)
}

// wake has all that wait look again. The caller has h.mu.
func (h *hand) wake() {
	if h.freed != nil {
		close(h.freed)
		h.freed = nil
	}
}

// share is what each partition may have in hand, whatever the others have: half of an equal part of BufferBytes.
func (s *session) share() int64 { return s.source.sc.BufferBytes / 2 / max(s.sharing.Load(), 1) }

// allowed returns how many more bytes a partition may take that has own bytes in hand. While BufferBytes are in hand
// it is half of the partition's share. So each partition can have a batch, even if many wait with one. The caller has
// h.mu.
func (s *session) allowed(own int64) int64 {
	return max(s.share()-own, s.source.sc.BufferBytes-s.hand.bytes)
}

// crowded returns a channel to wait on while the next record of a is too large beside those in hand, nil if it is not.
// A partition with nothing in hand may exceed its limit. A record larger than a share may have to wait for records that
// are held or not due. So one of these at a time is not crowded, whatever is in hand. One that is too soon would keep the
// others waiting. So it waits itself. The caller has a.mu and h.mu.
func (s *session) crowded(a *Assignment, tooSoon bool) <-chan struct{} {
	size, buffer := recordBytes(a.queue[0]), s.source.sc.BufferBytes
	h := &s.hand
	if size <= s.allowed(a.inHand) || a.inHand == 0 && h.bytes+size <= buffer*3/2 {
		h.leave(a)
		return nil
	}
	if size > s.share() && !tooSoon {
		if !slices.Contains(h.line, a) {
			h.line = append(h.line, a)
		}
		if h.line[0] == a && h.large == 0 {
			return nil
		}
	} else {
		h.leave(a) // a share is larger meanwhile
	}
	if h.freed == nil {
		h.freed = make(chan struct{})
	}
	return h.freed
}

// tooSoon returns when the next record is due, if it is not yet and is larger than a share. Zero: it is not too soon. A
// record is asked about once. The caller has a.mu.
func (a *Assignment) tooSoon() time.Time {
	r, due := a.queue[0], a.session.source.sc.Due
	if due == nil || recordBytes(r) <= a.session.share() {
		return time.Time{}
	}
	if a.dated != r.Offset+1 {
		a.dated, a.due = r.Offset+1, due(r)
	}
	if a.due.After(time.Now()) {
		return a.due
	}
	return time.Time{}
}

// awaitFreed waits until memory was given back, or until a time that is not zero.
func (a *Assignment) awaitFreed(ctx context.Context, freed <-chan struct{}, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-a.leaving.Done():
	case <-freed:
	case <-due:
	}
}

// reserve counts the next record of a promised batch in hand, so that no other partition is promised the same memory. A record
// within the partition's own share takes nothing from others. The caller has a.mu and h.mu.
func (a *Assignment) reserve() {
	if size := recordBytes(a.queue[0]); size > a.session.share() {
		a.reserved = size
		a.inHand, a.session.hand.bytes = a.inHand+size, a.session.hand.bytes+size
	}
}

// offer is grant if the next record is not crowded. Otherwise there is none, and freed and until are as for promise.
func (a *Assignment) offer(records int, bytes int64) (n int, most int64, freed <-chan struct{}, until time.Time) {
	if len(a.queue) == 0 { // dropped since
		return 0, 0, nil, time.Time{}
	}
	until = a.tooSoon()
	h := &a.session.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	if freed = a.session.crowded(a, !until.IsZero()); freed != nil {
		return 0, 0, freed, until
	}
	n, most = a.granted(records, bytes)
	return n, most, nil, time.Time{}
}

// grant returns how many records come next within these limits, at least one, and how many bytes they may take. It
// counts them in hand. The caller has a.mu.
func (a *Assignment) grant(records int, bytes int64) (n int, most int64) {
	h := &a.session.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	return a.granted(records, bytes)
}

// granted is grant with h.mu.
func (a *Assignment) granted(records int, bytes int64) (n int, most int64) {
	h := &a.session.hand
	a.inHand, h.bytes, a.reserved = a.inHand-a.reserved, h.bytes-a.reserved, 0
	most = min(bytes, a.session.allowed(a.inHand))
	n, _ = fit(a.queue, records, most)
	if len(h.line) > 0 && h.line[0] == a && h.large == 0 && n > 0 {
		h.large = recordBytes(a.queue[0])
	}
	for _, r := range a.queue[:n] {
		a.inHand += recordBytes(r)
		h.bytes += recordBytes(r)
	}
	return n, most
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

// finishTaken gives back the memory of all taken records.
func (a *Assignment) finishTaken() { a.Done(math.MaxInt64) }

// Done gives back the memory of taken records that are done. bytes is their sum by [RecordBytes].
func (a *Assignment) Done(bytes int64) {
	a.mu.Lock()
	bytes = min(bytes, a.inHand)
	lent := min(bytes, a.lent)
	a.session.source.room.lent.Add(-lent)
	a.inHand, a.lent = a.inHand-bytes, a.lent-lent
	a.reserved = min(a.reserved, a.inHand)
	left := a.inHand
	a.mu.Unlock()
	a.session.free(a, bytes, left)
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
