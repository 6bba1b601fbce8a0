package store

import (
	"sync"

	"docket/internal/consumer/pipeline"
)

// maxSources bounds the memory of redelivery.
const maxSources = 4096

// memory remembers of which partitions the last batch met rows that were there. It decides only what is tried first, so
// it may forget at any time. Its zero value is empty.
type memory struct {
	mu  sync.Mutex
	met map[source]struct{}
}

type source struct {
	topic     string
	partition int32
}

// sourceOf stands for the whole batch: its rows come from one partition, or it is one of the replayer's.
func sourceOf(rows []pipeline.Row) source { return source{rows[0].Topic, rows[0].Partition} }

// met says whether the last batch of that partition met rows that were there.
func (m *memory) has(s source) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.met[s]
	return ok
}

// note remembers whether a batch did.
func (m *memory) note(s source, met bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !met {
		delete(m.met, s)
		return
	}
	if m.met == nil {
		m.met = map[source]struct{}{}
	}
	for other := range m.met {
		if len(m.met) < maxSources {
			break
		}
		delete(m.met, other)
	}
	m.met[s] = struct{}{}
}
