package app

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// easing raises a soft limit of memory while nearly all of it is in use. Then each collection of garbage finds little, and the next
// one follows soon: a limit of rows in Redis, or many bad rows, doubled the processor time of a consumer. A drain of good rows
// has room enough, and keeps the limit. It never falls again: a program that needs less uses less.
type easing struct {
	limit, most int64  // bytes
	step        int64  // bytes, by which it rises
	little      uint64 // bytes of new memory for which a collection is not worth it
	near        uint64 // bytes in use from which on the limit is what makes it collect

	cycles, allocated uint64 // at the last judgement
}

// newEasing returns the easing of a limit, in bytes. It rises by a sixth at most.
func newEasing(limit int64) *easing {
	e := &easing{limit: limit, most: limit + limit/6, step: limit / 18, little: uint64(limit / 8), near: uint64(limit - limit/8)} //nolint:gosec // a limit is positive
	e.cycles, e.allocated, _ = collections()
	return e
}

// collectionsToJudge is how many collections tell whether they are worth it.
const collectionsToJudge = 4

// judge says whether the limit rose, by all collections and all memory that was ever allocated, and the memory in use, in bytes.
func (e *easing) judge(cycles, allocated, used uint64) (rose bool) {
	n := cycles - e.cycles
	if n < collectionsToJudge {
		return false
	}
	rose = (allocated-e.allocated)/n < e.little && used >= e.near && e.limit < e.most
	if rose {
		e.limit = min(e.limit+e.step, e.most)
	}
	e.cycles, e.allocated = cycles, allocated
	return rose
}

const easeEvery = time.Second

// run judges until ctx ends.
func (e *easing) run(ctx context.Context) {
	tick := time.NewTicker(easeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if e.judge(collections()) {
				debug.SetMemoryLimit(e.limit)
			}
		}
	}
}

// collections returns how often garbage was collected, how many bytes were ever allocated, and how many count for the limit.
func collections() (cycles, allocated, used uint64) {
	samples := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64() - samples[3].Value.Uint64()
}
