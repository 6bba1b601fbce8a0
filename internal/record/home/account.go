package home

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Account keeps the books of one assignment of one partition. It lives as long as the assignment: when the partition
// is lost and won again, a new Account begins, and what the old one settles can no longer be committed.
//
// It is safe for concurrent use.
type Account struct {
	topic     string
	partition int32

	mu      sync.Mutex
	waiting []position // read and not entered yet, in offset order, all behind what entered
	open    []position // in offset order; the first is the lowest that is not done
	next    int64      // what may be committed: one past the last of the unbroken run of done records; -1 before any
	last    int64      // the highest offset that entered or was a mark right behind it; -1 before any
	ep      int32      // leader epoch of the record before next
}

type position struct {
	offset int64
	upTo   int64 // one past the record and the marks right behind it
	epoch  int32
	taken  bool // part of a batch
	done   bool // every decision of it has a home
}

// NewAccount opens the books of a partition that was just assigned.
func NewAccount(topic string, partition int32) *Account {
	return &Account{topic: topic, partition: partition, next: -1, last: -1, ep: -1}
}

// Topic is the topic that the account is of.
func (a *Account) Topic() string { return a.topic }

// Partition is the partition that the account is of.
func (a *Account) Partition() int32 { return a.partition }

// Open is the number of records that entered and have not all their homes yet, done records behind an open one included.
func (a *Account) Open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open)
}

// Await writes down records as they are read, before they enter: until they do, [Account.Reached] stays below them. It is told
// everything that is read, in offset order, or nothing at all. A control record, which marks the end of a transaction, carries
// no decision: it never enters, and is passed as soon as everything before it has its homes. Records of another partition or
// out of order panic.
func (a *Account) Await(records ...*kgo.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range records {
		a.check(r, "was read", a.read())
		switch n := len(a.waiting); {
		case !r.Attrs.IsControl():
			a.waiting = append(a.waiting, positionOf(r))
		case n > 0:
			a.waiting[n-1].upTo, a.waiting[n-1].epoch = r.Offset+1, r.LeaderEpoch
		default:
			a.pass(r)
		}
	}
}

// Return takes back what was awaited from an offset on and did not enter: it is read again later.
func (a *Account) Return(from int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, _ := slices.BinarySearchFunc(a.waiting, from, byOffset)
	a.waiting = slices.Clone(a.waiting[:i]) // the array of what was awaited may be large
}

// read is the highest offset that the books know.
func (a *Account) read() int64 {
	if n := len(a.waiting); n > 0 {
		return a.waiting[n-1].upTo - 1
	}
	return a.last
}

// pass moves over a mark with nothing unread before it: it is done when all that entered is.
func (a *Account) pass(mark *kgo.Record) {
	a.last = mark.Offset
	if n := len(a.open); n > 0 {
		a.open[n-1].upTo, a.open[n-1].epoch = mark.Offset+1, mark.LeaderEpoch
		return
	}
	a.next, a.ep = mark.Offset+1, mark.LeaderEpoch
}

func positionOf(r *kgo.Record) position {
	return position{offset: r.Offset, upTo: r.Offset + 1, epoch: r.LeaderEpoch}
}

// Enter writes records into the books. They must be of this partition and go on in offset order from what entered
// before (gaps are fine: compaction and control records make them), and leave out none that was awaited. Anything else
// would settle the wrong offsets, so it panics.
func (a *Account) Enter(records ...*kgo.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range records {
		a.check(r, "entered", a.last)
		p := positionOf(r)
		if len(a.waiting) > 0 {
			if p = a.waiting[0]; p.offset != r.Offset {
				panic(fmt.Sprintf("home: offset %d of %s/%d entered before %d", r.Offset, a.topic, a.partition, p.offset))
			}
			if a.waiting = a.waiting[1:]; len(a.waiting) == 0 {
				a.waiting = nil
			}
		}
		a.last = p.upTo - 1
		a.open = append(a.open, p)
	}
}

func (a *Account) check(r *kgo.Record, how string, last int64) {
	if r.Topic != a.topic || r.Partition != a.partition {
		panic(fmt.Sprintf("home: record of %s/%d %s in the account of %s/%d", r.Topic, r.Partition, how, a.topic, a.partition))
	}
	if r.Offset <= last {
		panic(fmt.Sprintf("home: offset %d of %s/%d %s after %d", r.Offset, a.topic, a.partition, how, last))
	}
}

// Batch takes records that entered before, to be given homes together. A record can be taken once.
func (a *Account) Batch(records []*kgo.Record) *Batch {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := -1
	for _, r := range records {
		at = a.find(r.Offset, at+1)
		p := a.at(at)
		if p == nil || p.taken {
			panic(fmt.Sprintf("home: offset %d of %s/%d is not free to take", r.Offset, a.topic, a.partition))
		}
		p.taken = true
	}
	var room [][]Entry
	select {
	case room = <-rooms:
	default:
	}
	if cap(room) < len(records) {
		room = make([][]Entry, len(records))
	}
	return &Batch{account: a, records: records, decisions: room[:len(records)], whole: true}
}

// rooms are for the entries of batches to come, of any account, zeroed: there may be a thousand accounts, and few batches
// at a time. The entries themselves are never used again.
var rooms = make(chan [][]Entry, 8)

// keep takes what a batch is done with for another.
func keep(room [][]Entry) {
	clear(room)
	select {
	case rooms <- room:
	default:
	}
}

// find returns where an offset stands in open, -1 where it does not. near is where it stands as a rule.
func (a *Account) find(offset int64, near int) int {
	if p := a.at(near); p != nil && p.offset == offset {
		return near
	}
	i, ok := slices.BinarySearchFunc(a.open, offset, byOffset)
	if !ok {
		return -1
	}
	return i
}

func byOffset(p position, offset int64) int { return cmp.Compare(p.offset, offset) }

func (a *Account) at(i int) *position {
	if i < 0 || i >= len(a.open) {
		return nil
	}
	return &a.open[i]
}

// settle marks records as done and moves next over the unbroken run of done ones.
func (a *Account) settle(records []*kgo.Record) Settled {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := -1
	for _, r := range records {
		at = a.find(r.Offset, at+1)
		if p := a.at(at); p != nil {
			p.done = true
		}
	}
	run := 0
	for run < len(a.open) && a.open[run].done {
		a.next, a.ep = a.open[run].upTo, a.open[run].epoch
		run++
	}
	a.open = slices.Delete(a.open, 0, run)
	return a.reached()
}

// Reached is what may be committed now: up to the first record that has not all its homes, whether it is in hand or only
// awaited. It goes beyond what the last batch settled where nothing but marks of transactions came after it.
func (a *Account) Reached() Settled {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reached()
}

func (a *Account) reached() Settled { return Settled{account: a, next: a.next, epoch: a.ep} }

// Settled says up to where a partition may be committed. Only [Batch.Settle] and [Account.Reached] make one that is of
// use; the zero value is good for nothing.
type Settled struct {
	account *Account
	next    int64
	epoch   int32
}

// Of says whether s was settled in the books of a. A commit asks before anything else: what an earlier assignment
// settled is not ours to commit.
func (s Settled) Of(a *Account) bool { return a != nil && s.account == a }

// Offset is the offset to commit: that of the next record to be read. It is -1 when nothing can be committed yet,
// because a record before the settled ones still waits for its home.
func (s Settled) Offset() int64 {
	if s.account == nil {
		return -1
	}
	return s.next
}

// LeaderEpoch is the leader epoch of the record before [Settled.Offset], -1 when unknown.
func (s Settled) LeaderEpoch() int32 { return s.epoch }
