package fstest

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"

	"docket/internal/fallback"
)

// Prepare succeeds at once.
func (m *FS) Prepare() (fallback.Info, error) {
	if err := m.begin(OpStat, false); err != nil {
		return fallback.Info{}, wrap(OpStat, ".", err)
	}
	defer m.mu.Unlock()
	return m.self, nil
}

// SetSelf changes the description that Prepare returns.
func (m *FS) SetSelf(info fallback.Info) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.self = info
}

func (m *FS) Chmod(mode fs.FileMode) error {
	if err := m.begin(OpChmod, true); err != nil {
		return wrap(OpChmod, ".", err)
	}
	defer m.mu.Unlock()
	m.self.Mode = m.self.Mode&^fs.ModePerm | mode
	return nil
}

func at(name string) entry { return entry{path.Dir(name), path.Base(name)} }

type lock struct{ *file }

func (l lock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.locks, l.name)
	return nil
}

func (m *FS) Lock(name string) (fallback.File, error) {
	if err := m.begin(OpLock, false); err != nil {
		return nil, wrap(OpLock, name, err)
	}
	defer m.mu.Unlock()
	if m.locks[name] {
		return nil, fallback.ErrLocked
	}
	m.locks[name] = true
	if d := m.dirs["."]; d.now[name] == nil {
		n := m.node(0o600)
		d.now[name], d.durable[name] = n, n
	}
	return lock{&file{m: m, name: name, n: m.dirs["."].now[name]}}, nil
}

func (m *FS) Create(name string) (fallback.File, error) {
	if err := m.begin(OpCreate, true); err != nil {
		return nil, wrap(OpCreate, name, err)
	}
	defer m.mu.Unlock()
	d, base := m.place(name)
	switch {
	case d == nil:
		return nil, wrap(OpCreate, name, fs.ErrNotExist)
	case d.now[base] != nil:
		return nil, wrap(OpCreate, name, fs.ErrExist)
	}
	n := m.node(0o600)
	d.now[base] = n
	m.changed(change{to: at(name), node: n})
	return &file{m: m, n: n, name: name}, nil
}

func (m *FS) Open(name string) (fallback.File, error) {
	if err := m.begin(OpOpen, false); err != nil {
		return nil, wrap(OpOpen, name, err)
	}
	defer m.mu.Unlock()
	d, base := m.place(name)
	if d == nil || d.now[base] == nil {
		return nil, wrap(OpOpen, name, fs.ErrNotExist)
	}
	if !d.now[base].info.Mode.IsRegular() {
		panic("fstest: " + name + " was opened, and is no regular file")
	}
	return &file{m: m, n: d.now[base], name: name}, nil
}

func (m *FS) Lstat(name string) (fallback.Info, error) {
	if err := m.begin(OpStat, false); err != nil {
		return fallback.Info{}, wrap(OpStat, name, err)
	}
	defer m.mu.Unlock()
	if _, ok := m.dirs[name]; ok {
		return m.self, nil
	}
	d, base := m.place(name)
	if d == nil || d.now[base] == nil {
		return fallback.Info{}, wrap(OpStat, name, fs.ErrNotExist)
	}
	return d.now[base].stat(), nil
}

func (n *node) stat() fallback.Info {
	info := n.info
	info.Size = int64(len(n.data))
	return info
}

func (m *FS) Rename(from, to string) error {
	if err := m.begin(OpRename, true); err != nil {
		return wrap(OpRename, from, err)
	}
	defer m.mu.Unlock()
	src, a := m.place(from)
	dst, b := m.place(to)
	if src == nil || dst == nil || src.now[a] == nil {
		return wrap(OpRename, from, fs.ErrNotExist)
	}
	dst.now[b] = src.now[a]
	m.changed(change{from: at(from), to: at(to), node: src.now[a]})
	delete(src.now, a)
	return nil
}

func (m *FS) Remove(name string) error {
	if err := m.begin(OpRemove, true); err != nil {
		return wrap(OpRemove, name, err)
	}
	defer m.mu.Unlock()
	d, base := m.place(name)
	if d == nil || d.now[base] == nil {
		return wrap(OpRemove, name, fs.ErrNotExist)
	}
	m.changed(change{from: at(name), node: d.now[base]})
	delete(d.now, base)
	return nil
}

// Mkdir is durable at once, because only the names inside matter here.
func (m *FS) Mkdir(name string) error {
	if err := m.begin(OpMkdir, true); err != nil {
		return wrap(OpMkdir, name, err)
	}
	defer m.mu.Unlock()
	if m.dirs[name] != nil {
		return wrap(OpMkdir, name, fs.ErrExist)
	}
	m.dirs[name] = newDir()
	return nil
}

func (m *FS) SyncDir(name string) error {
	if err := m.begin(OpSyncDir, true); err != nil {
		return wrap(OpSyncDir, name, err)
	}
	defer m.mu.Unlock()
	d := m.dirs[name]
	if d == nil {
		return wrap(OpSyncDir, name, fs.ErrNotExist)
	}
	m.settleDir(name)
	return nil
}

func (m *FS) Close() error { return nil }

type file struct {
	m    *FS
	n    *node
	name string
	at   int
}

func (f *file) Read(p []byte) (int, error) {
	if err := f.m.begin(OpRead, false); err != nil {
		return 0, wrap(OpRead, f.name, err)
	}
	defer f.m.mu.Unlock()
	if f.at >= len(f.n.data) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[f.at:])
	f.at += n
	return n, nil
}

func (f *file) Write(p []byte) (int, error) {
	err := f.m.begin(OpWrite, true)
	if errors.Is(err, ErrPowerCut) {
		return 0, err
	}
	defer f.m.mu.Unlock()
	if err != nil {
		p = p[:len(p)/2]
		f.n.data = append(f.n.data, p...)
		return len(p), wrap(OpWrite, f.name, err)
	}
	f.n.data = append(f.n.data, p...)
	return len(p), nil
}

func (f *file) Sync() error {
	if err := f.m.begin(OpSync, true); err != nil {
		f.m.mu.Lock()
		f.n.poisoned = !errors.Is(err, ErrPowerCut)
		f.m.mu.Unlock()
		return wrap(OpSync, f.name, err)
	}
	defer f.m.mu.Unlock()
	if !f.n.poisoned { // otherwise it succeeds and has nothing left to write
		f.n.synced = slices.Clone(f.n.data)
	}
	return nil
}

func (f *file) Close() error {
	if err := f.m.begin(OpClose, false); err != nil {
		return wrap(OpClose, f.name, err)
	}
	f.m.mu.Unlock()
	return nil
}

func (f *file) Stat() (fallback.Info, error) {
	if err := f.m.begin(OpStat, false); err != nil {
		return fallback.Info{}, wrap(OpStat, f.name, err)
	}
	defer f.m.mu.Unlock()
	return f.n.stat(), nil
}

type reader struct {
	m     *FS
	names []string
}

// ReadDir returns names in a fixed order that is neither by age nor alphabetic, like a hashed directory.
func (m *FS) ReadDir() (fallback.Dir, error) {
	if err := m.begin(OpOpen, false); err != nil {
		return nil, wrap(OpOpen, ".", err)
	}
	m.mu.Unlock()
	r := &reader{m: m}
	return r, r.Rewind()
}

func (r *reader) Rewind() error {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	d := r.m.dirs["."]
	r.names = slices.Collect(maps.Keys(d.now))
	for name := range r.m.dirs {
		if name != "." {
			r.names = append(r.names, name)
		}
	}
	slices.SortFunc(r.names, func(a, b string) int {
		if ha, hb := scramble(a), scramble(b); ha != hb {
			return int(ha>>1) - int(hb>>1)
		}
		return 0
	})
	return nil
}

func scramble(s string) uint32 {
	h := uint32(2166136261)
	for _, c := range []byte(s) {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

func (r *reader) Names(n int) ([]string, error) {
	if err := r.m.begin(OpReadDir, false); err != nil {
		return nil, wrap(OpReadDir, ".", err)
	}
	defer r.m.mu.Unlock()
	if len(r.names) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(r.names))
	out := r.names[:n]
	r.names = r.names[n:]
	r.m.namesRead += n
	return out, nil
}

func (r *reader) Close() error { return nil }

// Errnos are the errors of a disk that is full, broken, read-only or out of quota.
var Errnos = []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EDQUOT, syscall.EMFILE}
