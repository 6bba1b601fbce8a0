package views

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
)

// Memory is a store for tests. The zero value is empty.
type Memory struct {
	mu   sync.Mutex
	last int64
	all  []View
	err  error
}

// Fail has every call return err; nil ends that.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// List implements [Store].
func (m *Memory) List(_ context.Context, owner string) (all []View, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.all {
		if v.Owner == owner || v.Shared() {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b View) int {
		return cmp.Or(-strings.Compare(a.Owner, b.Owner), strings.Compare(a.Name, b.Name))
	})
	return all, m.err
}

// Save implements [Store].
func (m *Memory) Save(_ context.Context, v View) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	n := 0
	for i, o := range m.all {
		if o.Owner != v.Owner {
			continue
		}
		if n++; o.Name == v.Name {
			v.ID = o.ID
			m.all[i] = v
			return nil
		}
	}
	if n >= Most {
		return ErrFull
	}
	m.last++
	v.ID = m.last
	m.all = append(m.all, v)
	return nil
}

// Remove implements [Store].
func (m *Memory) Remove(_ context.Context, id int64, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	before := len(m.all)
	m.all = slices.DeleteFunc(m.all, func(v View) bool { return v.ID == id && v.Owner == owner })
	if len(m.all) == before {
		return ErrNone
	}
	return nil
}
