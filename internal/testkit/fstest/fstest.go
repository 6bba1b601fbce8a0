// Package fstest has an in-memory fallback.FS for tests, which can fail any operation and lose power. It knows
// nothing about the spool.
//
// A file has its written and its synced content. A directory has its visible and its durable names. Reboot builds the
// disk after a power cut.
package fstest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"time"

	"docket/internal/fallback"
)

// Op is a kind of operation that can fail or be counted.
type Op string

// The operations of a fallback.FS. OpAny matches all of them.
const (
	OpAny     Op = "any"
	OpOpen    Op = "open"
	OpCreate  Op = "create"
	OpRead    Op = "read"
	OpWrite   Op = "write"
	OpSync    Op = "sync"
	OpClose   Op = "close"
	OpRename  Op = "rename"
	OpRemove  Op = "remove"
	OpReadDir Op = "readdir"
	OpStat    Op = "stat"
	OpSyncDir Op = "syncdir"
	OpMkdir   Op = "mkdir"
	OpLock    Op = "lock"
	OpChmod   Op = "chmod"
)

// ErrPowerCut is returned by every operation between a Cut and Reboot.
var ErrPowerCut = errors.New("power cut")

// Fault fails the N-th operation of a kind, counted from 1 from the moment it is set. With Forever it fails all later
// ones too. A failed write has written half.
type Fault struct {
	Op      Op
	N       int
	Err     error
	Forever bool
}

type node struct {
	info     fallback.Info
	data     []byte
	synced   []byte
	poisoned bool // a sync failed: the kernel has dropped the dirty pages
}

type dir struct {
	now     map[string]*node
	durable map[string]*node
}

// FS is the disk. It is safe for concurrent use. Several spools may open it, and one of them gets the lock.
type FS struct {
	mu        sync.Mutex
	dirs      map[string]*dir
	self      fallback.Info
	locks     map[string]bool
	ids       uint64
	faults    []*Fault
	seen      map[*Fault]int
	ops       map[Op]int
	namesRead int
	mutations int
	cutAt     int
	slow      map[Op]time.Duration
	stands    map[Op]stand
	pending   []change
}

var _ fallback.FS = (*FS)(nil)

// New returns an empty directory, mode 0700, of this user.
func New() *FS {
	return &FS{
		dirs:  map[string]*dir{".": newDir()},
		self:  fallback.Info{Mode: fs.ModeDir | 0o700, Links: 1, Own: true},
		locks: make(map[string]bool),
		seen:  make(map[*Fault]int),
		ops:   make(map[Op]int),
		slow:  make(map[Op]time.Duration),

		stands: make(map[Op]stand),
	}
}

func newDir() *dir { return &dir{now: make(map[string]*node), durable: make(map[string]*node)} }

// Fail sets a fault; several can be set.
func (m *FS) Fail(f Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, &f)
}

// Heal removes all faults.
func (m *FS) Heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = nil
}

// Reached reports whether some fault has struck.
func (m *FS) Reached() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.faults {
		if m.seen[f] >= f.N {
			return true
		}
	}
	return false
}

// Slow makes every operation of a kind take that long.
func (m *FS) Slow(op Op, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow[op] = d
}

// stand is the point where the next operation of a kind waits.
type stand struct{ begun, goOn chan struct{} }

// Stand makes the next operation of a kind wait, before it does anything, until goOn is called. begun is closed once
// it waits.
func (m *FS) Stand(op Op) (begun <-chan struct{}, goOn func()) {
	s := stand{make(chan struct{}), make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stands[op] = s
	return s.begun, sync.OnceFunc(func() { close(s.goOn) })
}

// Cut switches the power off just before the n-th changing operation from now; 0: never.
func (m *FS) Cut(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cutAt = 0
	if n > 0 {
		m.cutAt = m.mutations + n
	}
}

// IsCut reports whether the power is off.
func (m *FS) IsCut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cutAt > 0 && m.mutations >= m.cutAt
}

// Count returns how often an operation was called.
func (m *FS) Count(op Op) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops[op]
}

// NamesRead returns how many directory entries were handed out.
func (m *FS) NamesRead() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.namesRead
}

// Aftermath says which unsynced data survives a power cut.
type Aftermath int

// Results of a power cut.
const (
	Lost  Aftermath = iota // neither names nor bytes
	Kept                   // all names and bytes
	Named                  // all names, no bytes
	Mixed                  // each name at random, bytes up to a random place
)

// Reboot returns the disk after a power cut, unlocked and without faults. Only Mixed uses the seed.
func (m *FS) Reboot(how Aftermath, seed uint64) *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	rnd := rand.New(rand.NewPCG(seed, 1))
	out := New()
	out.ids = m.ids
	names := slices.Sorted(maps.Keys(m.dirs))
	for _, name := range names {
		d := newDir()
		before := m.dirs[name]
		all := maps.Clone(before.durable)
		maps.Copy(all, before.now)
		for _, entry := range slices.Sorted(maps.Keys(all)) {
			from := before.durable
			if how == Kept || how == Named || how == Mixed && rnd.IntN(2) == 0 {
				from = before.now
			}
			if n, ok := from[entry]; ok {
				left := n.after(how, rnd)
				d.now[entry], d.durable[entry] = left, left
			}
		}
		out.dirs[name] = d
	}
	return out
}

func (n *node) after(how Aftermath, rnd *rand.Rand) *node {
	data := n.synced
	switch {
	case how == Kept && !n.poisoned:
		data = n.data
	case how == Mixed && len(n.data) > len(n.synced) && !n.poisoned:
		data = n.data[:len(n.synced)+rnd.IntN(len(n.data)-len(n.synced)+1)]
	}
	info := n.info
	return &node{info: info, data: slices.Clone(data), synced: slices.Clone(data)}
}

// Plant adds a durable file with any mode: a type bit makes it a symlink, FIFO or device.
func (m *FS) Plant(name string, content []byte, mode fs.FileMode, links uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base := m.place(name)
	n := m.node(mode)
	n.info.Links = links
	n.data, n.synced = slices.Clone(content), slices.Clone(content)
	d.now[base], d.durable[base] = n, n
}

// Content returns the bytes of a file, nil if there is none.
func (m *FS) Content(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base := m.place(name)
	if d == nil || d.now[base] == nil {
		return nil
	}
	return slices.Clone(d.now[base].data)
}

// Changes returns how many operations have changed the disk so far, or tried to.
func (m *FS) Changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mutations
}

// Durable returns what a power cut certainly leaves of a directory: by durable name, the synced bytes.
func (m *FS) Durable(name string) map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := make(map[string][]byte)
	if d := m.dirs[name]; d != nil {
		for base, n := range d.durable {
			left[base] = slices.Clone(n.synced)
		}
	}
	return left
}

// Files returns the names in a directory, sorted.
func (m *FS) Files(name string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirs[name] == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.dirs[name].now))
}

func (m *FS) node(mode fs.FileMode) *node {
	m.ids++
	return &node{info: fallback.Info{Mode: mode, Links: 1, Own: true, ID: [2]uint64{1, m.ids}, Time: time.Unix(int64(m.ids), 0)}}
}

// place returns a directory and a name in it. The caller holds the lock.
func (m *FS) place(name string) (*dir, string) {
	return m.dirs[path.Dir(name)], path.Base(name)
}

// begin counts an operation, delays it and fails it if it is its turn. It returns with the lock held if err is nil.
func (m *FS) begin(op Op, changes bool) error {
	m.mu.Lock()
	if d := m.slow[op]; d > 0 {
		m.mu.Unlock()
		time.Sleep(d)
		m.mu.Lock()
	}
	if s, ok := m.stands[op]; ok {
		delete(m.stands, op)
		close(s.begun)
		m.mu.Unlock()
		<-s.goOn
		m.mu.Lock()
	}
	m.ops[op]++
	if changes {
		m.mutations++
	}
	if m.cutAt > 0 && m.mutations >= m.cutAt {
		m.mu.Unlock()
		return ErrPowerCut
	}
	for _, f := range m.faults {
		if f.Op != OpAny && f.Op != op {
			continue
		}
		m.seen[f]++
		if n := m.seen[f]; n == f.N || n > f.N && f.Forever {
			if op != OpWrite {
				m.mu.Unlock()
			}
			return f.Err
		}
	}
	return nil
}

func wrap(op Op, name string, err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return &fs.PathError{Op: string(op), Path: name, Err: err}
}
