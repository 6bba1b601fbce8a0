//go:build integration && linux

package ondisk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"docket/internal/fallback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const inside = "DOCKET_TEST_IN_NAMESPACE"

// alone runs the test again in a process with its own mounts. There it returns an empty directory on a tmpfs.
func alone(t *testing.T, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if os.Getenv(inside) == "" {
		child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.count=1", "-test.v")
		child.Env = append(os.Environ(), inside+"=1")
		child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
			child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
			child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
		}
		out, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Fatalf("in a namespace of its own: %v\n%s", err, out)
		}
		return ""
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make mounts private: %v", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,"+options); err != nil {
		t.Fatalf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// random does not compress.
var random = rand.New(rand.NewPCG(1, 2))

func lines(key string, n int) []fallback.Line {
	var out []fallback.Line
	for i := range n {
		value := make([]byte, 1000)
		for j := range value {
			value[j] = byte(random.Uint32())
		}
		out = append(out, fallback.Line{Record: &kgo.Record{Topic: "dlq", Key: fmt.Appendf(nil, "%s.%d", key, i), Value: value}})
	}
	return out
}

func open(t *testing.T, dir string) (*fallback.Spool, error) {
	t.Helper()
	return fallback.Open(fallback.Config{Dir: dir, Instance: "w", MaxBytes: 1 << 30}, fallback.OS(dir), zerolog.Nop())
}

type kafka struct{ keys []string }

func (k *kafka) Publish(_ context.Context, records []*kgo.Record) []error {
	for _, r := range records {
		k.keys = append(k.keys, string(r.Key))
	}
	return make([]error, len(records))
}

// checkDisk opens the directory again and expects exactly these records from it, with nothing left.
func checkDisk(t *testing.T, dir string, want []string) {
	t.Helper()
	s, err := open(t, dir)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	k := &kafka{}
	for range len(want) + 3 {
		if _, err := s.Recover(t.Context(), k); err != nil {
			t.Fatalf("recover: %v", err)
		}
	}
	slices.Sort(k.keys)
	if !slices.Equal(k.keys, slices.Sorted(slices.Values(want))) {
		t.Errorf("%d records came back, %d were appended", len(k.keys), len(want))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left := names(t, dir); !slices.Equal(left, []string{".lock"}) {
		t.Errorf("left in the directory: %v", left)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "notes" {
			all = append(all, e.Name())
		}
	}
	return all
}

// untilItFails appends until the disk refuses, and returns the keys that it took.
func untilItFails(t *testing.T, s *fallback.Spool, each int, want error) (taken []string) {
	t.Helper()
	for n := range 200 {
		batch := lines(fmt.Sprint(n), each)
		err := s.Append(t.Context(), batch)
		if err == nil {
			for _, l := range batch {
				taken = append(taken, string(l.Record.Key))
			}
			continue
		}
		if !errors.Is(err, want) {
			t.Fatalf("append %d: %v, want %v", n, err, want)
		}
		if n == 0 {
			t.Fatal("nothing was appended")
		}
		return taken
	}
	t.Fatal("the disk is never full")
	return nil
}

// noTrace checks that a failed append left nothing behind, at any step.
func noTrace(t *testing.T, dir string, appends int) {
	t.Helper()
	if all := names(t, dir); len(all) != 2*appends+1 {
		t.Errorf("%d appends were taken, and there are %v", appends, all)
	}
}

func TestFullDisk_WholeFilesOrNone(t *testing.T) {
	t.Parallel()
	dir := alone(t, "size=64k")
	if dir == "" {
		return
	}
	s, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	taken := untilItFails(t, s, 5, syscall.ENOSPC)
	noTrace(t, dir, len(taken)/5)
	k := &kafka{}
	if _, err := s.Recover(t.Context(), k); err != nil || len(k.keys) != 5 {
		t.Errorf("recovered %d: %v", len(k.keys), err)
	}
	taken = slices.DeleteFunc(taken, func(key string) bool { return slices.Contains(k.keys, key) })
	if err := s.Append(t.Context(), lines("again", 1)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	checkDisk(t, dir, append(taken, "again.0"))
}

func TestFullDisk_NoEmptyFile(t *testing.T) {
	t.Parallel()
	dir := alone(t, "size=64k")
	if dir == "" {
		return
	}
	s, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), lines("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	if err := s.Append(t.Context(), lines("b", 1)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append: %v", err)
	}
	noTrace(t, dir, 1)
	if err := errors.Join(os.Remove(filepath.Join(dir, "notes")), s.Append(t.Context(), lines("c", 1)), s.Close()); err != nil {
		t.Error(err)
	}
	checkDisk(t, dir, []string{"a.0", "c.0"})
}

func TestFullDisk_WithoutInodes(t *testing.T) {
	t.Parallel()
	dir := alone(t, "size=1m,nr_inodes=10")
	if dir == "" {
		return
	}
	s, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	taken := untilItFails(t, s, 1, syscall.ENOSPC)
	noTrace(t, dir, len(taken))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	checkDisk(t, dir, taken)
}

func TestReadOnlyDisk_RefusedAtTheStart(t *testing.T) {
	t.Parallel()
	dir := alone(t, "size=64k")
	if dir == "" {
		return
	}
	s, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Append(t.Context(), lines("a", 2)), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatalf("remount: %v", err)
	}
	if _, err := open(t, dir); !errors.Is(err, syscall.EROFS) {
		t.Errorf("start on a read-only disk: %v", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatalf("remount: %v", err)
	}
	checkDisk(t, dir, []string{"a.0", "a.1"})
}

func TestFileDescriptors_NoneLeft(t *testing.T) {
	t.Parallel()
	dir := alone(t, "size=64k")
	if dir == "" {
		return
	}
	s, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), lines("a", 1)); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	free, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0) // the lowest free number
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Close(free), syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(free), Max: was.Max})); err != nil {
		t.Fatal(err)
	}
	appended := s.Append(t.Context(), lines("b", 1))
	_, recovered := s.Recover(t.Context(), &kafka{})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(appended, syscall.EMFILE) || !errors.Is(recovered, syscall.EMFILE) {
		t.Errorf("append: %v, recover: %v; want both to find no descriptor", appended, recovered)
	}
	noTrace(t, dir, 1)
	if err := errors.Join(s.Append(t.Context(), lines("c", 1)), s.Close()); err != nil {
		t.Error(err)
	}
	checkDisk(t, dir, []string{"a.0", "c.0"})
}
