package kafka

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// stamp is what is kept of a record that was taken: its memory may be another's before it is committed.
type stamp struct {
	offset int64
	milli  int64 // Kafka timestamp, Unix milliseconds; 0 or less: it has none
}

// forget drops the stamps below what is committed. The caller has a.mu.
func (a *Assignment) forget(committed int64) {
	n := 0
	for n < len(a.taken) && a.taken[n].offset < committed {
		n++
	}
	a.taken = slices.Delete(a.taken, 0, n)
}

// oldest is the earliest timestamp of what was taken or waits in the queue, zero where there is none. Timestamps need not
// rise with the offsets, so all are looked at. The caller has a.mu.
func (a *Assignment) oldest() time.Time {
	least := int64(0)
	older := func(milli int64) {
		if milli > 0 && (least == 0 || milli < least) {
			least = milli
		}
	}
	for _, s := range a.taken {
		older(s.milli)
	}
	for _, r := range a.queue {
		older(milli(r))
	}
	if least == 0 {
		return time.Time{}
	}
	return time.UnixMilli(least)
}

func milli(r *kgo.Record) int64 { return r.Timestamp.UnixMilli() }
