package kafka

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errNoRoom refuses a compressed set of records while there is no memory for it. It is not a fault: the client stays
// before the set and fetches it again.
var errNoRoom = errors.New("there is no room for the set of records")

// room counts the memory of fetched records that no handler works on, over all partitions. An opened set counts until
// its records are recycled or the garbage collector frees it (slabs). So records that the client dropped count until
// they are freed, and a set counts while one of its records is in use.
type room struct {
	own    int64     // bytes that are never borrowed
	set    int64     // limit of one set in bytes
	memory *Memory   // lends what is beyond own; nil: the source is alone
	until  time.Time // until then the memory is kept for this room; zero: it still waits. It belongs to memory.mu
	last   time.Time // until then it stays the first that waits. It belongs to memory.mu

	most   atomic.Int64 // limit in bytes. A source that joins the memory raises it for all
	made   atomic.Int64 // bytes of slabs in use: inflated sets and records
	plain  atomic.Int64 // bytes of queued records that came uncompressed, and of answers that records in hand keep alive
	lent   atomic.Int64 // bytes of slabs used by batches in hand; they count there
	queued atomic.Int64 // bytes of queued records, compressed or not

	opening  *sync.Mutex // between the look for room and the count of what uses it. Sources that share memory share it
	promises []promise   // the oldest first. They belong to opening

	full   atomic.Bool  // the room is full: no set is opened, and polls are rare
	wanted atomic.Int64 // bytes of the largest set that was refused since
}

func newRoom(sc SourceConfig) *room {
	r := &room{own: sc.BufferBytes, set: int64(sc.MaxDecompressBytes), opening: new(sync.Mutex)}
	r.most.Store(max(2*sc.BufferBytes, sc.BufferBytes+int64(sc.MaxDecompressBytes)))
	if sc.Memory != nil {
		sc.Memory.join(r)
	}
	return r
}

// borrowed returns how many of the used bytes are borrowed, with so many more.
func (r *room) borrowed(more int64) int64 { return max(0, r.used()+more-r.own) }

func (r *room) used() int64 { return r.made.Load() + r.plain.Load() - r.lent.Load() }

// may reports whether there is room for a set of at least this many bytes. If not, the room counts as full.
func (r *room) may(least int64) bool {
	if r.full.Load() || r.used()+least > r.most.Load() || !r.memory.may(r, least) {
		r.refuse(least)
		return false
	}
	return true
}

// promise is counted room for the records of an inflated set, until the client takes them.
type promise struct {
	records int64
	until   time.Time
}

// promiseHolds is how long a promise holds. The client takes the records at once, or never because the set is broken.
const promiseHolds = time.Second

// promise counts room for so many records. The caller has r.opening.
func (r *room) promise(records int64) {
	r.made.Add(records * recordSize)
	r.promises = append(r.promises, promise{records, time.Now().Add(promiseHolds)})
}

// promised reports whether there is a promise for so many records, and ends it. The room still counts them.
func (r *room) promised(records int64) bool {
	r.opening.Lock()
	defer r.opening.Unlock()
	at := slices.IndexFunc(r.promises, func(p promise) bool { return p.records == records })
	if at < 0 {
		return false
	}
	r.promises = slices.Delete(r.promises, at, at+1)
	return true
}

// forget ends the promises whose records the client did not take. The caller has r.opening.
func (r *room) forget() {
	for now := time.Now(); len(r.promises) > 0 && now.After(r.promises[0].until); {
		r.made.Add(-r.promises[0].records * recordSize)
		r.promises = slices.Delete(r.promises, 0, 1)
	}
}

func (r *room) refuse(weight int64) {
	for old := r.wanted.Load(); weight > old && !r.wanted.CompareAndSwap(old, weight); {
		old = r.wanted.Load()
	}
	r.full.Store(true)
	r.memory.refused(r, weight)
}

// low reports whether there is room again: for many records, and for the set that was refused.
func (r *room) low() bool {
	wanted := r.wanted.Load()
	return r.fits(wanted) && r.memory.may(r, wanted)
}

// fits is low without the other sources.
func (r *room) fits(wanted int64) bool {
	return r.used() <= r.most.Load()*3/4 && r.used()+wanted <= r.most.Load()
}

// ease reports whether the room is no longer full, and notes it.
func (r *room) ease() bool {
	r.opening.Lock()
	r.forget()
	r.opening.Unlock()
	wanted := r.wanted.Load()
	switch {
	case !r.full.Load():
	case r.low():
		r.wanted.Store(0)
		r.full.Store(false)
		r.memory.eased(r)
	case wanted > 0 && r.fits(wanted): // its time as the first may be over, and the others need not know that it waits
		r.memory.refused(r, wanted)
	}
	return !r.full.Load()
}

// count adds queued records, or with sign -1 subtracts them. The caller has a.mu.
func (a *Assignment) count(records []*kgo.Record, sign int64) {
	var all, plain int64
	for _, r := range records {
		size := recordBytes(r)
		all += size
		if r.Attrs.CompressionType() == 0 {
			plain += size - recordOverhead // the record itself is in a slab
		}
	}
	a.bytes += sign * all
	r := a.session.source.room
	r.queued.Add(sign * all)
	r.plain.Add(sign * plain)
}

// keep counts a broker's answer that uncompressed records in hand keep in memory. The caller has a.mu.
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

// copyOut copies taken records out of their sets if they would keep too much memory alive. The caller has a.mu.
func (a *Assignment) copyOut(taken []*kgo.Record) {
	r := a.session.source.room
	if len(taken) == 0 {
		return
	}
	spare := r.most.Load() / 4 // bytes that may be kept alive in vain
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

// left returns the bytes of queued records that share the set of a taken record. The caller has a.mu.
func (a *Assignment) left(last *kgo.Record) (bytes int64) {
	for _, r := range a.queue {
		if r.Context != last.Context || last.Context == nil {
			break
		}
		bytes += recordBytes(r)
	}
	return bytes
}

// await waits for room, but not for long: the records that fill the room may come earlier in the same answer.
func (r *room) await(bytes int64) {
	for waited := time.Duration(0); waited < roomWait && (r.used()+bytes > r.most.Load() || !r.memory.may(r, bytes)); waited += fullLook {
		r.refuse(bytes)
		time.Sleep(fullLook)
	}
}

// roomWait is the longest such wait.
const roomWait = 200 * time.Millisecond
