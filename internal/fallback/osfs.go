package fallback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// OS returns the FS of a directory on disk, confined to it by os.Root. It touches nothing before Prepare.
func OS(dir string) FS { return &osFS{dir: filepath.Clean(dir), sync: syncPath} }

type osFS struct {
	dir  string
	root *os.Root
	sync func(dir string) error
}

func (o *osFS) Prepare() (Info, error) {
	if err := o.makeDir(o.dir); err != nil {
		return Info{}, err
	}
	named, err := os.Lstat(o.dir)
	if err != nil {
		return Info{}, err
	}
	if !named.IsDir() {
		return Info{}, ErrUnsafeDir
	}
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return Info{}, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = ErrUnsafeDir // replaced by a symlink in between
	}
	if err != nil {
		return Info{}, errors.Join(err, root.Close())
	}
	o.root = root
	return infoOf(opened), nil
}

// makeDir makes the missing directories of dir and syncs each parent. A power cut that removes a directory would
// remove its files.
func (o *osFS) makeDir(dir string) error {
	_, err := os.Lstat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := o.makeParent(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return o.sync(parent)
}

// makeParent is makeDir for the parents, where an operator may use symlinks.
func (o *osFS) makeParent(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	return o.makeDir(dir)
}

func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (o *osFS) Chmod(mode fs.FileMode) error { return o.root.Chmod(".", mode) }

func (o *osFS) Lock(name string) (File, error) {
	f, err := o.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		f, err = o.open(name, os.O_RDWR)
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

func (o *osFS) Create(name string) (File, error) {
	f, err := o.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (o *osFS) Open(name string) (File, error) {
	f, err := o.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// open checks the name before and after. os.Root stays inside the directory, but follows symlinks there, and opening
// a device can have effects.
func (o *osFS) open(name string, flag int) (*os.File, error) {
	named, err := o.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: %w", name, errForeign)
	}
	f, err := o.root.OpenFile(name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(named, opened) {
		err = fmt.Errorf("open %s: %w", name, errForeign)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (o *osFS) Lstat(name string) (Info, error) {
	info, err := o.root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

func (o *osFS) Rename(from, to string) error { return o.root.Rename(from, to) }
func (o *osFS) Remove(name string) error     { return o.root.Remove(name) }
func (o *osFS) Mkdir(name string) error      { return o.root.Mkdir(name, 0o700) }

func (o *osFS) SyncDir(name string) error {
	d, err := o.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (o *osFS) ReadDir() (Dir, error) {
	d, err := o.root.Open(".")
	if err != nil {
		return nil, err
	}
	return osDir{d}, nil
}

func (o *osFS) Close() error {
	if o.root == nil {
		return nil
	}
	return o.root.Close()
}

type osFile struct{ *os.File }

func (f osFile) Stat() (Info, error) {
	info, err := f.File.Stat()
	if err != nil {
		return Info{}, err
	}
	return infoOf(info), nil
}

type osDir struct{ *os.File }

func (d osDir) Names(n int) ([]string, error) { return d.Readdirnames(n) }

func (d osDir) Rewind() error {
	_, err := d.Seek(0, 0)
	return err
}

func infoOf(info fs.FileInfo) Info {
	i := Info{Mode: info.Mode(), Size: info.Size(), Time: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		i.Links = uint64(st.Nlink)
		i.Own = int(st.Uid) == os.Geteuid()
		i.ID = [2]uint64{uint64(st.Dev), st.Ino}
	}
	return i
}
