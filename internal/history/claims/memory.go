package claims

import (
	"context"
	"sync"
	"time"
)

// Memory keeps claims for the users of one process. It is the model of the other ports.
type Memory struct {
	// Now returns the time; nil: time.Now.
	Now func() time.Time

	mu     sync.Mutex
	claims map[string]claim
}

type claim struct {
	version  int64
	priority Priority
	until    time.Time
}

// look returns the claim of a key, and whether it holds. The caller has the lock.
func (m *Memory) look(key string) (of claim, now time.Time, holds bool) {
	now = time.Now()
	if m.Now != nil {
		now = m.Now()
	}
	of = m.claims[key]
	return of, now, now.Before(of.until)
}

// Begin implements [Port].
func (m *Memory) Begin(_ context.Context, key string, p Priority, lease time.Duration) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of, now, holds := m.look(key)
	if holds && p <= of.priority {
		return 0, nil
	}
	if m.claims == nil {
		m.claims = map[string]claim{}
	}
	of = claim{max(of.version+1, now.UnixMicro()), p, now.Add(lease)}
	m.claims[key] = of
	return of.version, nil
}

// Keep implements [Port].
func (m *Memory) Keep(_ context.Context, key string, version int64, lease time.Duration) (bool, error) {
	return m.set(key, version, lease), nil
}

// End implements [Port].
func (m *Memory) End(_ context.Context, key string, version int64) (bool, error) {
	return m.set(key, version, 0), nil
}

// set lets a claim of this version that holds end after a time.
func (m *Memory) set(key string, version int64, after time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	of, now, holds := m.look(key)
	if !holds || of.version != version {
		return false
	}
	of.until = now.Add(after)
	m.claims[key] = of
	return true
}
