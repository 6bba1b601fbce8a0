package telemetry

import (
	"slices"
	"sync"
)

// books holds sums that are kept apart from each other, so that a decision without an account shows. In flight is the
// size of the batches that were opened and not closed. A batch is closed as a whole, whatever its report says. So a
// decision that is missing from a report, or is in it twice, stays visible for good.
type books struct {
	mu    sync.Mutex
	taken int64
	gave  int64
	homed int64
	open  []int // sizes of the batches in flight
}

func (b *books) took(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken += int64(n)
	b.open = append(b.open, n)
}

func (b *books) gaveBack(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gave += int64(n)
	b.shut(n)
}

// brought closes a batch whose report has reported decisions, homed of them with a home.
func (b *books) brought(reported, homed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.homed += int64(homed)
	b.shut(reported)
}

// shut closes the batch of that size; where there is none, the one that is nearest above, or else the largest.
func (b *books) shut(n int) {
	best := -1
	for i, size := range b.open {
		switch {
		case best < 0,
			size >= n && (b.open[best] < n || size < b.open[best]),
			size < n && b.open[best] < n && size > b.open[best]:
			best = i
		}
	}
	if best >= 0 {
		b.open = slices.Delete(b.open, best, best+1)
	}
}

func (b *books) unaccounted() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	flying := int64(0)
	for _, n := range b.open {
		flying += int64(n)
	}
	return b.taken - b.gave - b.homed - flying
}
