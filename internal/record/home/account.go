package home

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Account tracks the offsets of one assignment of one partition. It lives as long as the assignment. When the
// partition is lost and won again, a new Account begins, and offsets settled by the old one can no longer be
// committed.
//
// It is safe for concurrent use.
type Account struct {
	topic     string
	partition int32

	mu      sync.Mutex
	waiting []position // read and not entered yet, in offset order, all behind the entered ones
	open    []position // in offset order; the first is the lowest that is not done
	next    int64      // offset to commit: one past the unbroken prefix of done records; -1 before any
	last    int64      // highest offset that entered or was a marker right behind it; -1 before any
	ep      int32      // leader epoch of the record before next
}

type position struct {
	offset int64
	upTo   int64 // one past the record and the markers right behind it
	epoch  int32
	taken  bool // part of a batch
	done   bool // all its decisions have homes
}

// NewAccount makes an account for a partition that was just assigned.
func NewAccount(topic string, partition int32) *Account {
	return &Account{topic: topic, partition: partition, next: -1, last: -1, ep: -1}
}

// Topic returns the account's topic.
func (a *Account) Topic() string { return a.topic }

// Partition returns the account's partition.
func (a *Account) Partition() int32 { return a.partition }

// Open returns the number of entered records that are not all done, including done ones behind an open one.
func (a *Account) Open() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open)
}

// Await notes records as they are read, before they enter. Until they enter, [Account.Reached] stays before them. It
// is called for all records that are read, in offset order, or for none.
//
// A control record, which ends a transaction, has no decision. It never enters, and is passed as soon as all records
// before it have their homes. Records of another partition or out of order panic.
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

// Return removes the awaited records from an offset on that did not enter. They are read again later.
func (a *Account) Return(from int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, _ := slices.BinarySearchFunc(a.waiting, from, byOffset)
	a.waiting = slices.Clone(a.waiting[:i]) // the array of awaited records may be large
}

// read returns the highest known offset.
func (a *Account) read() int64 {
	if n := len(a.waiting); n > 0 {
		return a.waiting[n-1].upTo - 1
	}
	return a.last
}

// pass moves over a marker. It is done when all entered records are.
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

// Enter adds records to the account. They must be of this partition and continue in offset order. Gaps are fine,
// because compaction and control records make them. They must include every awaited record. Other input would settle
// the wrong offsets, so it panics.
func (a *Account) Enter(records ...*kgo.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entered := 0 // of those that wait
	defer func() { a.shorten(entered) }()
	for _, r := range records {
		a.check(r, "entered", a.last)
		p := positionOf(r)
		if entered < len(a.waiting) {
			if p = a.waiting[entered]; p.offset != r.Offset {
				panic(fmt.Sprintf("home: offset %d of %s/%d entered before %d", r.Offset, a.topic, a.partition, p.offset))
			}
			entered++
		}
		a.last = p.upTo - 1
		a.open = append(a.open, p)
	}
}

// mostKept limits the array that is kept when nothing waits.
const mostKept = 16 << 10

// shorten removes the first n awaited records. Their array is used again, unless it is large and empty.
func (a *Account) shorten(n int) {
	if a.waiting = slices.Delete(a.waiting, 0, n); len(a.waiting) == 0 && cap(a.waiting) > mostKept {
		a.waiting = nil
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

// Batch takes entered records, to be given homes together. A record can be taken once.
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

// rooms keeps zeroed slices for the entries of later batches, of any account. There may be a thousand accounts, and
// few batches at a time. Entries are never used again.
var rooms = make(chan [][]Entry, 8)

// keep takes the slices of a finished batch for another.
func keep(room [][]Entry) {
	clear(room)
	select {
	case rooms <- room:
	default:
	}
}

// find returns the position of an offset in open, or -1. near is the usual position.
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

// settle marks records as done and moves next over the unbroken prefix of done ones.
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

// Reached returns the offset that may be committed now: up to the first record without all its homes, even one that
// is only awaited. It is beyond the last batch's offset if only transaction markers came after that.
func (a *Account) Reached() Settled {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reached()
}

func (a *Account) reached() Settled { return Settled{account: a, next: a.next, epoch: a.ep} }

// Settled is an offset up to which a partition may be committed. Only [Batch.Settle] and [Account.Reached] make valid
// ones. A zero value cannot be committed.
type Settled struct {
	account *Account
	next    int64
	epoch   int32
}

// Of reports whether s was settled by account a. A commit checks this first, because offsets of an earlier assignment
// must not be committed.
func (s Settled) Of(a *Account) bool { return a != nil && s.account == a }

// Offset returns the offset to commit: that of the next record to be read. It is -1 if nothing can be committed yet,
// because an earlier record has no home.
func (s Settled) Offset() int64 {
	if s.account == nil {
		return -1
	}
	return s.next
}

// LeaderEpoch returns the leader epoch of the record before [Settled.Offset], -1 if unknown.
func (s Settled) LeaderEpoch() int32 { return s.epoch }
