//go:build synctests

package sim

import (
	"io/fs"

	"docket/internal/fallback"
)

var _ fallback.FS = disk{}

// act is an effect on the disk.
func act[T any](p *process, what string, do func() (T, error)) (T, error) {
	after, err := p.effect(what, 0)
	if err != nil {
		var none T
		return none, err
	}
	defer after()
	return do()
}

func plain(p *process, what string, do func() error) error {
	_, err := act(p, what, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (d disk) Prepare() (fallback.Info, error) { return act(d.p, "prepare", d.inner.Prepare) }
func (d disk) Chmod(mode fs.FileMode) error {
	return plain(d.p, "chmod", func() error { return d.inner.Chmod(mode) })
}

func (d disk) Lock(name string) (fallback.File, error) {
	inner, err := act(d.p, "lock", func() (fallback.File, error) { return d.inner.Lock(name) })
	if err != nil {
		return nil, err
	}
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	if d.p.dead {
		_ = inner.Close()
		return nil, errKilled
	}
	d.p.locks = append(d.p.locks, inner)
	return held{file{d.p, inner}}, nil
}

// held is the lock of a living process. Its death releases it.
type held struct{ file }

func (h held) Close() error {
	return plain(h.p, "unlock", h.inner.Close)
}

func (d disk) Create(name string) (fallback.File, error) {
	f, err := act(d.p, "create", func() (fallback.File, error) { return d.inner.Create(name) })
	if err != nil {
		return nil, err
	}
	return file{d.p, f}, nil
}

func (d disk) Open(name string) (fallback.File, error) {
	f, err := act(d.p, "open", func() (fallback.File, error) { return d.inner.Open(name) })
	if err != nil {
		return nil, err
	}
	return file{d.p, f}, nil
}

func (d disk) Lstat(name string) (fallback.Info, error) {
	return act(d.p, "stat", func() (fallback.Info, error) { return d.inner.Lstat(name) })
}

func (d disk) Rename(from, to string) error {
	return plain(d.p, "rename", func() error { return d.inner.Rename(from, to) })
}

func (d disk) Remove(name string) error {
	return plain(d.p, "remove", func() error { return d.inner.Remove(name) })
}

func (d disk) Mkdir(name string) error {
	return plain(d.p, "mkdir", func() error { return d.inner.Mkdir(name) })
}

func (d disk) SyncDir(name string) error {
	return plain(d.p, "sync directory", func() error { return d.inner.SyncDir(name) })
}

func (d disk) ReadDir() (fallback.Dir, error) {
	names, err := act(d.p, "list", d.inner.ReadDir)
	if err != nil {
		return nil, err
	}
	return listing{d.p, names}, nil
}

func (d disk) Close() error { return d.inner.Close() }

type listing struct {
	p     *process
	inner fallback.Dir
}

func (l listing) Names(n int) ([]string, error) {
	return act(l.p, "list", func() ([]string, error) { return l.inner.Names(n) })
}
func (l listing) Rewind() error { return plain(l.p, "list", l.inner.Rewind) }
func (l listing) Close() error  { return l.inner.Close() }

type file struct {
	p     *process
	inner fallback.File
}

func (f file) Read(b []byte) (int, error) {
	return act(f.p, "read", func() (int, error) { return f.inner.Read(b) })
}

func (f file) Write(b []byte) (int, error) {
	return act(f.p, "write", func() (int, error) { return f.inner.Write(b) })
}
func (f file) Sync() error                  { return plain(f.p, "sync", f.inner.Sync) }
func (f file) Stat() (fallback.Info, error) { return act(f.p, "stat", f.inner.Stat) }
func (f file) Close() error                 { return plain(f.p, "close", f.inner.Close) }
