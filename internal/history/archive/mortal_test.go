package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Mortal is a directory of a process that is killed at a write or a removal. Nothing it does later has an effect.
type Mortal struct {
	Shelf
	Dir string
	// Lives is how many writes and removals it does before the one at which it is killed.
	Lives int
	// When says how much of that one is done.
	When string

	mu   sync.Mutex
	dead bool
}

// Whens are the values of [Mortal.When].
var Whens = []string{"before", "within", "after"}

// ErrKilled is each error of a killed process.
var ErrKilled = errors.New("killed")

// Dead reports whether it was killed.
func (m *Mortal) Dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// does reports whether the process does its next write or removal, and whether it lives on.
func (m *Mortal) does() (done, lives bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, false
	}
	m.Lives--
	m.dead = m.Lives < 0
	return !m.dead || m.When == "after", !m.dead
}

func (m *Mortal) Put(ctx context.Context, name string, r io.Reader) error {
	was := m.Dead()
	done, lives := m.does()
	if !was && !done && m.When == "within" && !strings.HasSuffix(name, startedSuffix) {
		beside := besides(filepath.Join(m.Dir, filepath.FromSlash(name)))
		if err := errors.Join(os.MkdirAll(filepath.Dir(beside), 0o700), os.WriteFile(beside, []byte("half"), 0o600)); err != nil {
			return err
		}
	}
	if done {
		if err := m.Shelf.Put(ctx, name, r); err != nil {
			return err
		}
	}
	return killed(lives)
}

func (m *Mortal) Remove(ctx context.Context, name string) error {
	done, lives := m.does()
	if done {
		if err := m.Shelf.Remove(ctx, name); err != nil {
			return err
		}
	}
	return killed(lives)
}

func (m *Mortal) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if m.Dead() {
		return nil, ErrKilled
	}
	return m.Shelf.Get(ctx, name)
}

func (m *Mortal) List(ctx context.Context, prefix string) ([]string, error) {
	if m.Dead() {
		return nil, ErrKilled
	}
	return m.Shelf.List(ctx, prefix)
}

func killed(lives bool) error {
	if lives {
		return nil
	}
	return ErrKilled
}

// Losing removes all manifests if lost, and returns the names of the archives whose files nobody may remove from then on.
func Losing(t *testing.T, dir string, lost bool) (names []string) {
	t.Helper()
	if !lost {
		return nil
	}
	for _, file := range AllFiles(t, dir) {
		if name, ok := strings.CutSuffix(file, manifestSuffix); ok {
			if _, err := os.Stat(filepath.Join(dir, name+startedSuffix)); err != nil {
				names = append(names, name)
			}
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return names
}

// FilesOf returns the files of an archive without its manifest.
func FilesOf(t *testing.T, dir, archive string) []string {
	t.Helper()
	return slices.DeleteFunc(AllFiles(t, dir), func(file string) bool { return archiveOf(file) != archive || partOf(file) == 0 })
}

// AllFiles returns the files in a directory, also those with a dot, in order.
func AllFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// NothingLeft fails if there is a file that belongs to no manifest, except those of some archives.
func NothingLeft(t *testing.T, dir, table string, except []string) {
	t.Helper()
	all, err := Whole(t.Context(), Dir(dir), table, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range AllFiles(t, dir) {
		of := archiveOf(file)
		if of != "" && slices.Contains(except, of) || slices.ContainsFunc(all, func(m *Manifest) bool {
			return file == m.Name()+manifestSuffix || slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == file })
		}) {
			continue
		}
		t.Errorf("%s was left", file)
	}
}
