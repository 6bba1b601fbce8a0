package session

import (
	"context"
	"sync"
	"time"
)

// Memory is a store for tests. The zero value is empty.
type Memory struct {
	mu  sync.Mutex
	all map[ID]Session
	err error
}

// Fail has every call return err; nil ends that.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Create implements [Store].
func (m *Memory) Create(_ context.Context, s Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.all == nil {
		m.all = map[ID]Session{}
	}
	for id, other := range m.all {
		if other.Over(s.CreatedAt) {
			delete(m.all, id)
		}
	}
	m.all[s.ID] = s
	return nil
}

// Find implements [Store].
func (m *Memory) Find(_ context.Context, id ID, now time.Time) (Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return Session{}, m.err
	}
	s, found := m.all[id]
	if !found || s.Over(now) {
		return Session{}, ErrNone
	}
	return s, nil
}

// Touch implements [Store].
func (m *Memory) Touch(_ context.Context, id ID, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, found := m.all[id]; found && !s.Over(now) && now.After(s.UsedAt) {
		s.UsedAt = now.UTC().Truncate(time.Microsecond)
		m.all[id] = s
	}
	return m.err
}

// End implements [Store].
func (m *Memory) End(_ context.Context, id ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, id)
	return m.err
}

// EndAll implements [Store].
func (m *Memory) EndAll(_ context.Context, name string) (n int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, s := range m.all {
		if s.Name == name {
			delete(m.all, id)
			n++
		}
	}
	return n, m.err
}
