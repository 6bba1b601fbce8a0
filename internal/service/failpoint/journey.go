package failpoint

import (
	"context"
	"sync"
)

// journey is what the wrapped ports have seen of the batch in hand of one partition. It travels with the context with
// which the partition is carried.
type journey struct {
	mu     sync.Mutex
	moves  int // whatever was called
	tries  int // writes since the batch began
	probes int
	failed int // rows of the largest write that failed
}

// view is a journey at one moment.
type view struct{ moves, tries, probes, failed int }

type journeyKey struct{}

func journeyOf(ctx context.Context) *journey {
	j, _ := ctx.Value(journeyKey{}).(*journey)
	return j
}

// note changes the journey and returns it as it is then.
func (j *journey) note(change func(j *journey)) view {
	if j == nil {
		return view{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.moves++
	if change != nil {
		change(j)
	}
	return view{j.moves, j.tries, j.probes, j.failed}
}

// still says that nothing was called since.
func (j *journey) still(since view) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.moves == since.moves
}

// begin is the start of the next batch.
func (j *journey) begin() {
	j.note(func(j *journey) { j.tries, j.probes, j.failed = 0, 0, 0 })
}

// purpose is what a connection to Postgres is dialled for.
type purpose uint8

const (
	forBatches purpose = iota // the zero value: also for the pool, which dials with nobody's context
	forProbe
	forUpkeep
)

type purposeKey struct{}

func purposeOf(ctx context.Context) purpose {
	p, _ := ctx.Value(purposeKey{}).(purpose)
	return p
}
