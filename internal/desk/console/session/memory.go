package session

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is a store for tests. The zero value is empty.
type Memory struct {
	mu  sync.Mutex
	all map[ID]Session
	// logouts are those of the provider that are remembered.
	logouts []logout
	err     error
	// readOnly is the error of writes.
	readOnly error
}

// Fail has every call return err; nil ends that.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// FailWrites has every call that changes something return err; nil ends that.
func (m *Memory) FailWrites(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readOnly = err
}

func (m *Memory) write() error {
	if m.err != nil {
		return m.err
	}
	return m.readOnly
}

// Create implements [Store].
func (m *Memory) Create(_ context.Context, s Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(); err != nil {
		return err
	}
	if m.all == nil {
		m.all = map[ID]Session{}
	}
	m.trim(s.CreatedAt)
	for _, other := range m.all {
		if s.Origin.Login != nil && bytes.Equal(s.Origin.Login, other.Origin.Login) {
			return ErrUsed
		}
	}
	m.all[s.ID] = s
	return nil
}

// trim removes what is over. The caller has m.mu.
func (m *Memory) trim(now time.Time) {
	m.logouts = slices.DeleteFunc(m.logouts, func(l logout) bool { return !now.Before(l.until) })
	maps.DeleteFunc(m.all, func(_ ID, s Session) bool { return s.Over(now) })
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
	s.Origin = Origin{}
	return s, nil
}

// Touch implements [Store].
func (m *Memory) Touch(_ context.Context, id ID, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(); err != nil {
		return err
	}
	if s, found := m.all[id]; found && !s.Over(now) && now.After(s.UsedAt) {
		s.UsedAt = now.UTC().Truncate(time.Microsecond)
		m.all[id] = s
	}
	return nil
}

// End implements [Store].
func (m *Memory) End(_ context.Context, id ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(); err != nil {
		return err
	}
	delete(m.all, id)
	return nil
}

// EndAll implements [Store].
func (m *Memory) EndAll(_ context.Context, name string) (int64, error) {
	return m.end(func(s Session) bool { return s.Name == name })
}

// logout is one of the provider.
type logout struct {
	of            Origin
	issued, until time.Time
}

// Ended implements [Store].
func (m *Memory) Ended(_ context.Context, o Origin, issued, now time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return false, m.err
	}
	return slices.ContainsFunc(m.logouts, func(l logout) bool {
		switch {
		case !now.Before(l.until):
			return false
		case l.of.Session != "":
			return l.of.Session == o.Session && (l.of.Subject == "" || l.of.Subject == o.Subject)
		}
		return l.of.Subject == o.Subject && !issued.After(l.issued)
	}), nil
}

// EndFrom implements [Store].
func (m *Memory) EndFrom(_ context.Context, o Origin, issued, now time.Time) (int64, error) {
	m.mu.Lock()
	if err := m.write(); err != nil {
		m.mu.Unlock()
		return 0, err
	}
	if o.Subject != "" || o.Session != "" {
		m.trim(now)
		m.logouts = append(m.logouts, logout{o, issued, now.Add(Remembered)})
	}
	m.mu.Unlock()
	return m.end(func(s Session) bool {
		switch {
		case o.Session != "":
			return s.Origin.Session == o.Session || s.Origin.Session == "" && o.Subject != "" && s.Origin.Subject == o.Subject
		case o.Subject != "":
			return s.Origin.Subject == o.Subject
		}
		return false
	})
}

func (m *Memory) end(chosen func(Session) bool) (n int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(); err != nil {
		return 0, err
	}
	for id, s := range m.all {
		if chosen(s) {
			delete(m.all, id)
			n++
		}
	}
	return n, nil
}
