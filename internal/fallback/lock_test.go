package fallback_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/fallback"
)

// One process has the directory, also after somebody removed the lock file: the names of two could be the same.
func TestAppend_LockFileRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	s := open(t, cfg(), fallback.OS(dir))
	id, _, _ := s.Held()
	remove := func() { must(t, os.Remove(filepath.Join(dir, ".lock"))) }

	remove()
	other, err := fallback.Open(cfg(), fallback.OS(dir), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), linesOf("a")); !errors.Is(err, fallback.ErrLocked) {
		t.Errorf("beside another process: %v", err)
	}
	if _, err := s.Recover(t.Context(), &broker{}); !errors.Is(err, fallback.ErrLocked) {
		t.Errorf("beside another process: %v", err)
	}
	mustAppend(t, other, linesOf("b")...)
	must(t, other.Close())

	mustAppend(t, s, linesOf("c")...)
	remove()
	mustAppend(t, s, linesOf("d")...)
	if _, err := fallback.Open(cfg(), fallback.OS(dir), zerolog.Nop()); !errors.Is(err, fallback.ErrLocked) {
		t.Errorf("the lock was not taken again: %v", err)
	}
	if now, err := fallback.IdentityOf(os.DirFS(dir)); err != nil || now != id {
		t.Errorf("the id is %q, %v, and was %q", now, err, id)
	}
	b := &broker{}
	drain(t, s, b)
	if len(b.keys()) != 3 {
		t.Errorf("published %q", b.keys())
	}
}

// hungLook is a disk that does not answer one look at the lock file before answered is closed.
type hungLook struct {
	fallback.FS
	armed           atomic.Bool
	asked, answered chan struct{}
}

func (h *hungLook) Lstat(name string) (fallback.Info, error) {
	if name == ".lock" && h.armed.CompareAndSwap(true, false) {
		close(h.asked)
		<-h.answered
	}
	return h.FS.Lstat(name)
}

// A look at the lock file that the disk does not answer holds up its own call alone.
func TestAppend_WaitsForNoOtherLook(t *testing.T) {
	t.Parallel()
	disk := &hungLook{FS: fallback.OS(filepath.Join(t.TempDir(), "spool")), asked: make(chan struct{}), answered: make(chan struct{})}
	s := open(t, cfg(), disk)
	mustAppend(t, s, linesOf("a")...)
	disk.armed.Store(true)
	hung, other := make(chan error, 1), make(chan error, 1)
	go func() { hung <- s.Append(t.Context(), linesOf("b")) }()
	<-disk.asked
	go func() { other <- s.Append(t.Context(), linesOf("c")) }()
	select {
	case err := <-other:
		must(t, err)
	case <-time.After(time.Minute):
		t.Error("it waits for the disk of another call")
	}
	close(disk.answered)
	must(t, <-hung)
}
