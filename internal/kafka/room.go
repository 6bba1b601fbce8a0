package kafka

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errNoRoom refuses a compressed set of records while there is no memory for it. It is no fault: the client has not moved past
// the set and fetches it again.
var errNoRoom = errors.New("there is no room for the set of records")

// room counts the memory of what was fetched and nobody works on, over all partitions. What the client makes of a set counts from
// when it was made until its records were recycled or the garbage collector found it (slabs): so what the client let go of
// unseen counts for as long as it takes memory, and so does a set of which one record is still in use.
type room struct {
	most int64 // bytes that all may take together

	made   atomic.Int64 // bytes of slabs in use: inflated sets and records
	plain  atomic.Int64 // bytes of queued records that came without compression, and of answers that records in hand keep
	lent   atomic.Int64 // bytes of slabs that batches in hand take, which are counted there
	queued atomic.Int64 // bytes of queued records of both kinds

	crammed atomic.Bool  // no set is opened, and polls are rare
	wanted  atomic.Int64 // bytes of the largest set that was refused since
}

func newRoom(sc SourceConfig) *room {
	return &room{most: max(2*sc.BufferBytes, sc.BufferBytes+int64(sc.MaxDecompressBytes))}
}

func (r *room) used() int64 { return r.made.Load() + r.plain.Load() - r.lent.Load() }

// may says whether a set finds room that takes at least so many bytes. Where it does not, the room is crammed.
func (r *room) may(least int64) bool {
	if r.crammed.Load() || r.used()+least > r.most {
		r.refuse(least)
		return false
	}
	return true
}

func (r *room) refuse(weight int64) {
	for old := r.wanted.Load(); weight > old && !r.wanted.CompareAndSwap(old, weight); {
		old = r.wanted.Load()
	}
	r.crammed.Store(true)
}

// low says that there is room again: for a good many records, and for the set that was refused.
func (r *room) low() bool {
	return r.used() <= r.most*3/4 && r.used()+r.wanted.Load() <= r.most
}

// ease ends being crammed where there is room again.
func (r *room) ease() bool {
	if r.crammed.Load() && r.low() {
		r.wanted.Store(0)
		r.crammed.Store(false)
	}
	return !r.crammed.Load()
}

// count counts records that were queued, or with -1 that are no more. The caller has a.mu.
func (a *Assignment) count(records []*kgo.Record, sign int64) {
	var all, plain int64
	for _, r := range records {
		size := recordBytes(r)
		all += size
		if r.Attrs.CompressionType() == 0 {
			plain += size - recordOverhead // the record itself is of a slab
		}
	}
	a.bytes += sign * all
	r := a.session.source.room
	r.queued.Add(sign * all)
	r.plain.Add(sign * plain)
}

// keep counts the answer of a broker, which a record without compression keeps in memory as long as it is in hand. The caller
// has a.mu.
func (a *Assignment) keep(keeps bool) {
	if a.keeps == keeps {
		return
	}
	a.keeps = keeps
	size := int64(a.session.source.sc.FetchMaxBytes)
	if !keeps {
		size = -size
	}
	a.session.source.room.plain.Add(size)
}

// loosen copies what was taken where too much would stay in memory for the sake of what is in hand: a record keeps all of its set.
// The caller has a.mu.
func (a *Assignment) loosen(taken []*kgo.Record) {
	r := a.session.source.room
	if len(taken) == 0 {
		return
	}
	spare := r.most / 4 // bytes that may stay in vain
	if r.used()-r.queued.Load() > spare || a.left(taken[len(taken)-1]) > spare/max(a.session.sharing.Load(), 1) {
		detach(taken)
		a.keep(false)
		return
	}
	plain := taken[0].Attrs.CompressionType() == 0
	a.keep(plain)
	lent := int64(0)
	for _, one := range taken {
		if plain {
			lent += recordOverhead // the rest of it is in answers
		} else {
			lent += recordBytes(one)
		}
	}
	lent = min(lent, a.inHand-a.lent)
	a.lent += lent
	r.lent.Add(lent)
}

// left is how many bytes the queue has of the set of a record that was taken from it. The caller has a.mu.
func (a *Assignment) left(last *kgo.Record) (bytes int64) {
	for _, r := range a.queue {
		if r.Context != last.Context || last.Context == nil {
			break
		}
		bytes += recordBytes(r)
	}
	return bytes
}

// await waits until there is room for so many bytes, but not for long: what fills the room may be what comes before them in the same
// answer.
func (r *room) await(bytes int64) {
	for waited := time.Duration(0); waited < roomWait && r.used()+bytes > r.most; waited += crammedLook {
		r.refuse(bytes)
		time.Sleep(crammedLook)
	}
}

// roomWait is the longest such wait.
const roomWait = 200 * time.Millisecond
