package kafka

import (
	"slices"
	"sync"
	"time"
)

// Memory shares the room of several sources of a process, so that all of them have the bound of one. Each source keeps
// its own part, BufferBytes, whatever the others do. It borrows the rest from what all have in common. A large set of
// records of one source may need most of that. Then the others give back what they borrowed. The zero value is not
// valid, use [NewMemory].
type Memory struct {
	opening sync.Mutex

	mu    sync.Mutex
	rooms []*room
	queue []*room // that were refused what they wanted to borrow, in order
}

// kept is how long the memory is kept for a room that was refused some, once there is enough. It fetches its set again
// meanwhile. Later the others may borrow again: its partition may be another member's now.
const kept = time.Second

// longestFirst is how long a room may be the first that waits. One that still waits then goes behind the others: the
// memory that it waits for may be in the hands of its own partitions, and nobody could borrow any meanwhile.
const longestFirst = 5 * time.Second

// NewMemory makes the memory that sources share as [SourceConfig.Memory].
func NewMemory() *Memory { return &Memory{} }

// join adds the room of a source that may have own bytes in its queues and opens sets of up to this many bytes.
func (m *Memory) join(r *room) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.memory, r.opening = m, &m.opening
	m.rooms = append(m.rooms, r)
	for _, one := range m.rooms {
		one.most.Store(one.own + m.common())
	}
}

// common is how many bytes all rooms together may borrow. The caller has m.mu.
func (m *Memory) common() (bytes int64) {
	largest := int64(0)
	for _, r := range m.rooms {
		bytes += r.own
		largest = max(largest, r.set)
	}
	return max(bytes, largest)
}

// may reports whether a room may use this many bytes more. If it has to borrow them, another room that was refused
// before comes first.
func (m *Memory) may(r *room, bytes int64) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lends(r, bytes)
}

// lends is may with m.mu.
func (m *Memory) lends(r *room, bytes int64) bool {
	borrowed := r.borrowed(bytes)
	if borrowed == 0 {
		return true
	}
	if len(m.queue) > 0 && m.queue[0].late(time.Now()) {
		m.leave(m.queue[0])
	}
	if len(m.queue) > 0 && m.queue[0] != r {
		return false
	}
	for _, other := range m.rooms {
		if other != r {
			borrowed += other.borrowed(0)
		}
	}
	return borrowed <= m.common()
}

// refused puts a room into the queue if it could have the bytes and for the others it cannot. Those that borrowed
// count as full until they gave it back.
func (m *Memory) refused(r *room, bytes int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lends(r, bytes) {
		return
	}
	r.until = time.Time{}
	if !slices.Contains(m.queue, r) {
		m.queue = append(m.queue, r)
		if len(m.queue) == 1 {
			r.last = time.Now().Add(longestFirst)
		}
	}
	for _, other := range m.rooms {
		if other != r && other.borrowed(0) > 0 {
			other.full.Store(true)
		}
	}
}

// eased notes that a room has space again, and keeps the memory for it from now on, for a time.
func (m *Memory) eased(r *room) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.until = time.Now().Add(kept)
}

// opened ends that time: the room uses what it borrows.
func (m *Memory) opened(r *room) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.borrowed(0) > 0 {
		m.leave(r)
	}
}

// leave takes a room out of the queue. The caller has m.mu.
func (m *Memory) leave(r *room) {
	first := len(m.queue) > 0 && m.queue[0] == r
	m.queue = slices.DeleteFunc(m.queue, func(one *room) bool { return one == r })
	r.until = time.Time{}
	if first && len(m.queue) > 0 {
		m.queue[0].last = time.Now().Add(longestFirst)
	}
}

// late reports whether the time of a room as the first that waits is over.
func (r *room) late(now time.Time) bool {
	return now.After(r.last) || !r.until.IsZero() && now.After(r.until)
}

// pressed reports whether a room has to give back what it borrowed, because another one waits for it.
func (m *Memory) pressed(r *room) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue) > 0 && m.queue[0] != r && r.borrowed(0) > 0
}
