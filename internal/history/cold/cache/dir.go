package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"docket/internal/history/archive"
)

// Names in the directory. Others are left alone, and do not count.
const (
	lockName   = "lock"
	fileSuffix = ".part"
	tempSuffix = ".tmp"
)

var (
	nameForm = regexp.MustCompile(`^[0-9a-f]{64}\.(part|tmp)$`)
	sumForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// hot is how long a file that was asked for stays, whatever else needs room.
const hot = 10 * time.Minute

// errFull says that there is no room for a file.
var errFull = errors.New("there is no room")

// path returns the place of a file; false: it cannot be cached.
func (c *Cache) path(of archive.File) (string, bool) {
	if !sumForm.MatchString(of.SHA256) || of.Bytes <= 0 {
		return "", false
	}
	return filepath.Join(c.dir, of.SHA256+fileSuffix), true
}

// locked calls f while no other process changes what is in the directory.
func (c *Cache) locked(f func() error) error {
	lock, err := os.OpenFile(filepath.Join(c.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := flock(lock, unix.LOCK_EX); err != nil {
		return err
	}
	return f()
}

// flock waits through signals.
func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// entry is a file of the directory.
type entry struct {
	name  string
	bytes int64
	asked time.Time
	temp  bool
}

// entries lists the files. It removes what killed processes left: a writer locks its file as long as it lives.
func (c *Cache) entries() (all []entry, bytes int64, err error) {
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range names {
		if !nameForm.MatchString(n.Name()) {
			continue
		}
		temp := filepath.Ext(n.Name()) == tempSuffix
		if temp && c.left(n.Name()) {
			continue
		}
		info, err := n.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		all = append(all, entry{n.Name(), info.Size(), info.ModTime(), temp})
		bytes += info.Size()
	}
	return all, bytes, nil
}

// left removes a file that is being written by nobody.
func (c *Cache) left(name string) bool {
	f, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }() // it was only read
	if flock(f, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	return os.Remove(f.Name()) == nil
}

// makeRoom removes the files that were not asked for the longest time, until so many bytes fit. It keeps hot ones, but
// for keepHot false. It is called under the lock.
func (c *Cache) makeRoom(bytes int64, keepHot bool) error {
	all, total, err := c.entries()
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b entry) int { return a.asked.Compare(b.asked) })
	for _, one := range all {
		if total+bytes <= c.most {
			return nil
		}
		if one.temp || keepHot && c.now().Sub(one.asked) < hot {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, one.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= one.bytes
	}
	if total+bytes > c.most {
		return errFull
	}
	return nil
}

// begin takes room for a file. The temporary file has its whole length from the start, so others count it. It fails if
// another process writes the same file.
func (c *Cache) begin(of archive.File) (f *os.File, err error) {
	path, ok := c.path(of)
	size := stored(of.Bytes)
	if !ok || size > c.most {
		return nil, errFull
	}
	temp := path[:len(path)-len(fileSuffix)] + tempSuffix
	err = c.locked(func() error {
		if _, err := os.Stat(path); err == nil {
			return fs.ErrExist
		}
		if err := c.makeRoom(size, true); err != nil {
			return err
		}
		if f, err = os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
			return err
		}
		if err = errors.Join(flock(f, unix.LOCK_EX|unix.LOCK_NB), f.Truncate(size)); err != nil {
			return errors.Join(err, os.Remove(temp), f.Close())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take room in the cache: %w", err)
	}
	return f, nil
}

// finish gives a written file its name. Nobody lists the directory meanwhile, who could see neither name.
func (c *Cache) finish(f *os.File, of archive.File) error {
	path, _ := c.path(of)
	if err := f.Sync(); err != nil {
		return err
	}
	if err := c.locked(func() error { return os.Rename(f.Name(), path) }); err != nil {
		return err
	}
	d, err := os.Open(c.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
