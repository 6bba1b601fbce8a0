package pipeline

import (
	"slices"
	"sync"
)

// mostForeseen is the number of constraints that are asked about before the first write of a batch.
const mostForeseen = 4

// foresight remembers, for all partitions of a process, which constraints refused rows of the last batches. The zero
// value remembers none. It is safe for concurrent use.
type foresight struct {
	mu    sync.Mutex
	names []string
}

func (f *foresight) likely() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.names)
}

func (f *foresight) remember(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.names) < mostForeseen && !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
}

func (f *foresight) forget(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = slices.DeleteFunc(f.names, func(n string) bool { return slices.Contains(names, n) })
}
