package home

import (
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

	mu   sync.Mutex
	open []position // in offset order; the first is the lowest that is not done
	next int64      // what may be committed: one past the last of the unbroken run of done records; -1 before any
	last int64      // the highest offset that entered; -1 before any
	ep   int32      // leader epoch of the record before next
}

type position struct {
	offset int64
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

// Enter writes records into the books. They must be of this partition and go on in offset order from what entered
// before (gaps are fine: compaction and control records make them). Anything else would settle the wrong offsets, so
// it panics.
func (a *Account) Enter(records ...*kgo.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range records {
		if r.Topic != a.topic || r.Partition != a.partition {
			panic(fmt.Sprintf("home: record of %s/%d entered the account of %s/%d", r.Topic, r.Partition, a.topic, a.partition))
		}
		if r.Offset <= a.last {
			panic(fmt.Sprintf("home: offset %d of %s/%d entered after %d", r.Offset, a.topic, a.partition, a.last))
		}
		a.last = r.Offset
		a.open = append(a.open, position{offset: r.Offset, epoch: r.LeaderEpoch})
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
	i, ok := slices.BinarySearchFunc(a.open, offset, func(p position, o int64) int {
		switch {
		case p.offset < o:
			return -1
		case p.offset > o:
			return 1
		}
		return 0
	})
	if !ok {
		return -1
	}
	return i
}

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
		a.next, a.ep = a.open[run].offset+1, a.open[run].epoch
		run++
	}
	a.open = slices.Delete(a.open, 0, run)
	return Settled{account: a, next: a.next, epoch: a.ep}
}

// Settled says up to where a partition may be committed. Only [Batch.Settle] makes one that is of use; the zero value
// is good for nothing.
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
