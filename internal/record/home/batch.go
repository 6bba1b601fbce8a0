package home

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Entry is the entry of one decision in its account, or of one Kafka record that could not be read as decisions.
type Entry struct{ home Home }

// Home returns the home of the entry, or None.
func (e *Entry) Home() Home { return e.home }

// Give gives the entry its home, once. A second home, or None, is a bug in the caller and panics.
func (e *Entry) Give(h Home) {
	if e.home != None || h == None || h >= homes {
		panic(fmt.Sprintf("home: %v given to an entry that has %v", h, e.home))
	}
	e.home = h
}

// Batch is a set of records of one partition that get their homes together. It belongs to one goroutine.
type Batch struct {
	account   *Account
	records   []*kgo.Record
	decisions [][]Entry // for each record
	arena     []Entry
	settled   bool
	whole     bool // it was not cut, so it owns decisions
	most      int64
}

// Records returns the records of the batch in offset order.
func (b *Batch) Records() []*kgo.Record { return b.records }

// Limit sets how many bytes the opened content of the records may take at a time: at least 1.
func (b *Batch) Limit(bytes int64) { b.most = bytes }

// Most returns the last Limit, or 0.
func (b *Batch) Most() int64 { return b.most }

// Carries says that record i has n decisions and returns their entries. An unreadable record counts as one. It is
// called once for every record. The entries do not move.
func (b *Batch) Carries(i, n int) []Entry {
	if b.decisions[i] != nil || n < 1 {
		panic(fmt.Sprintf("home: record %d of a batch opened twice, or with %d decisions", i, n))
	}
	if len(b.arena) < n {
		b.arena = make([]Entry, max(n, len(b.records)-i))
	}
	b.decisions[i], b.arena = b.arena[:n:n], b.arena[n:]
	return b.decisions[i]
}

// Cut takes the first n records off into a batch that is settled separately. Their entries stay valid.
func (b *Batch) Cut(n int) *Batch {
	whole := b.whole && n == len(b.records)
	head := &Batch{account: b.account, records: b.records[:n:n], decisions: b.decisions[:n:n], whole: whole}
	b.records, b.decisions, b.whole = b.records[n:], b.decisions[n:], false
	return head
}

// HomelessError says that a batch cannot be settled, because a decision has no home.
type HomelessError struct {
	Topic     string
	Partition int32
	Offset    int64 // of the first such record
	Decisions int   // decisions without a home in the whole batch; a record without a call of Carries counts as one
}

func (e *HomelessError) Error() string {
	return fmt.Sprintf("%d decisions have no home, the first of them in %s/%d at offset %d", e.Decisions, e.Topic, e.Partition, e.Offset)
}

// Settle closes the batch when every decision of every record has a home. Otherwise it returns a [*HomelessError],
// and the batch allows no commit.
func (b *Batch) Settle() (Settled, error) {
	missing := HomelessError{Topic: b.account.topic, Partition: b.account.partition, Offset: -1}
	for i, r := range b.records {
		n := 0
		for j := range b.decisions[i] {
			if b.decisions[i][j].home == None {
				n++
			}
		}
		if b.decisions[i] == nil {
			n = 1
		}
		if n > 0 && missing.Offset < 0 {
			missing.Offset = r.Offset
		}
		missing.Decisions += n
	}
	b.settled = missing.Decisions == 0
	if missing.Decisions > 0 {
		return Settled{}, &missing
	}
	return b.account.settle(b.records), nil
}

// Release frees the memory of the records for reuse. A forwarded record shares the bytes of its original. So the caller
// must know that nobody reads it any more: its home is proven by an answer.
//
// It is called last, after [Batch.Settle]; before that it panics. Afterwards no record is valid, nor the strings and
// bytes of its decisions.
func (b *Batch) Release() {
	if !b.settled {
		panic(fmt.Sprintf("home: records of %s/%d released before they were settled", b.account.topic, b.account.partition))
	}
	for i, r := range b.records {
		b.records[i] = nil
		r.Recycle()
	}
	if b.whole {
		keep(b.decisions)
	}
	b.records, b.decisions, b.whole = nil, nil, false
}
