package kafka

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// stamp keeps the offset and time of a taken record. The record's memory may be reused before the commit.
type stamp struct {
	offset int64
	milli  int64 // Kafka timestamp, Unix milliseconds; 0 or less: none
}

// forget drops the stamps below the committed offset. The caller has a.mu.
func (a *Assignment) forget(committed int64) {
	n := 0
	for n < len(a.taken) && a.taken[n].offset < committed {
		n++
	}
	a.taken = slices.Delete(a.taken, 0, n)
}

// oldest returns the earliest timestamp of records that were taken or wait in the queue, zero if there is none.
// Timestamps need not rise with the offsets, so it compares all of them. The caller has a.mu.
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
