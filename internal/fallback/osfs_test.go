package fallback_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/fallback"
)

func onDisk(dir string) fallback.Config { return fallback.Config{Dir: dir, Instance: "w"} }

func TestOS_PrivateAndDurable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool", "consumer")
	s, err := fallback.Open(onDisk(dir), fallback.OS(dir), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, linesOf("a", "b")...)
	if _, err := fallback.Open(onDisk(dir), fallback.OS(dir), zerolog.Nop()); !errors.Is(err, fallback.ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	for pattern, mode := range map[string]os.FileMode{".": 0o700, "*.jsonl.gz": 0o600, "*.meta.json": 0o600, ".lock": 0o600} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(names) != 1 {
			t.Fatalf("%s: %v %v", pattern, names, err)
		}
		if info, err := os.Lstat(names[0]); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", pattern, info.Mode(), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, onDisk(dir), fallback.OS(dir))
	b := &broker{}
	drain(t, again, b)
	wantKeys(t, b.keys(), "a", "b")
	if left, _ := filepath.Glob(filepath.Join(dir, "*.*")); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// A directory is as durable as its name in its parent, and so on up to one that existed before.
func TestOS_SyncsEveryNewDirectory(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "a", "b", "spool")
	var synced []string
	fsys := fallback.SyncingOS(dir, func(parent string) error {
		synced = append(synced, strings.TrimPrefix(parent, base))
		return nil
	})
	if _, err := fsys.Prepare(); err != nil {
		t.Fatal(err)
	}
	must(t, fsys.Close())
	if want := []string{"", "/a", "/a/b"}; !slices.Equal(synced, want) {
		t.Errorf("synced %q, want %q", synced, want)
	}
}

// The directories of /proc cannot be synced, so a sync that succeeds there did not ask the disk.
func TestOS_SyncReachesTheDisk(t *testing.T) {
	t.Parallel()
	dir := fmt.Sprintf("/proc/%d/task", os.Getpid())
	fsys := fallback.OS(dir)
	if _, err := fsys.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := fsys.SyncDir("."); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a directory of the spool: %v", err)
	}
	must(t, fsys.Close())
	if err := fallback.SyncPath(dir); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("the directory above it: %v", err)
	}
}

func TestOS_RefusesUnsafeDirectories(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	sound := filepath.Join(base, "real")
	shared := filepath.Join(base, "shared")
	file := filepath.Join(base, "file")
	link := filepath.Join(base, "link")
	must(t, os.Mkdir(sound, 0o700), os.Mkdir(shared, 0o700), os.WriteFile(file, nil, 0o600), os.Symlink(sound, link),
		os.WriteFile(filepath.Join(shared, "other"), nil, 0o600), os.Chmod(shared, 0o777))
	for _, dir := range []string{link, file, shared} {
		if _, err := fallback.Open(onDisk(dir), fallback.OS(dir), zerolog.Nop()); !errors.Is(err, fallback.ErrUnsafeDir) {
			t.Errorf("%s: %v", filepath.Base(dir), err)
		}
	}
	if info, err := os.Stat(shared); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("a directory with a life of its own was changed: %v", info.Mode())
	}
	must(t, os.Chmod(sound, 0o755))
	open(t, onDisk(sound), fallback.OS(sound))
	if info, err := os.Stat(sound); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("an empty directory of ours stays open to others: %v", info.Mode())
	}
}

func TestOS_IgnoresPlantedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, _, err := fallback.ImageOf(linesOf("no"))
	must(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, data, 0o600), os.WriteFile(at("inside"), data, 0o600),
		os.Symlink(secret, at("1700000000_a_1.jsonl.gz")),
		os.Symlink("inside", at("1700000000_a_2.jsonl.gz")),
		os.Link(secret, at("1700000000_a_3.jsonl.gz")),
		syscall.Mkfifo(at("1700000000_a_4.jsonl.gz"), 0o600),
		os.Mkdir(at("1700000000_a_5.jsonl.gz"), 0o700),
		os.WriteFile(at("1700000001_a_6.jsonl.gz"), data, 0o600),
		syscall.Mkfifo(at("1700000001_a_6.meta.json"), 0o600),
		os.Chmod(dir, 0o700))
	s := open(t, onDisk(dir), fallback.OS(dir))
	b := &broker{}
	for range 5 {
		mustRecover(t, s, b)
	}
	wantKeys(t, b.keys(), "no")
	for n := 1; n <= 5; n++ {
		if _, err := os.Lstat(at("1700000000_a_" + itoa(n) + ".jsonl.gz")); err != nil {
			t.Error(err)
		}
	}
	must(t, os.WriteFile(at("1700000001_a_7.jsonl.gz"), []byte(strings.Repeat("x", 100)), 0o600))
	drain(t, s, b)
	if _, err := os.Stat(at("corrupt/1700000001_a_7.jsonl.gz.reason")); err != nil {
		t.Error(err)
	}
}

func TestOS_RefusesASymlinkAsLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "target"), nil, 0o600), os.Symlink("target", filepath.Join(dir, ".lock")), os.Chmod(dir, 0o700))
	if s, err := fallback.Open(onDisk(dir), fallback.OS(dir), zerolog.Nop()); err == nil {
		t.Error("opened", s.Close())
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// benchLines makes a batch as OPA sends it: JSON of about 1 KiB that compresses well.
func benchLines(n int) ([]fallback.Line, int64) {
	lines := linesOf(keysFrom("key", n)...)
	var size int64
	for i := range lines {
		lines[i].Record.Value = []byte(`{"decision_id":"` + itoa(i*7919) + `","input":"` + strings.Repeat(itoa(i*104729)+",", 120) + `"}`)
		size += int64(len(lines[i].Record.Value))
	}
	return lines, size
}

var benchSizes = []int{500, 5000}

func BenchmarkAppend(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			s := open(b, onDisk(b.TempDir()), fallback.OS(b.TempDir()))
			lines, size := benchLines(n)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				mustAppend(b, s, lines...)
			}
		})
	}
}

func BenchmarkRecover(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			s := open(b, onDisk(b.TempDir()), fallback.OS(b.TempDir()))
			lines, size := benchLines(n)
			for range b.N {
				mustAppend(b, s, lines...)
			}
			b.SetBytes(size)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				mustRecover(b, s, discard{})
			}
		})
	}
}

func TestOS_NeverOverwrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "there"), []byte("kept"), 0o600))
	fsys := fallback.OS(dir)
	if _, err := fsys.Prepare(); err != nil {
		t.Fatal(err)
	}
	if f, err := fsys.Create("there"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created again: %v", errors.Join(err, f.Close()))
	}
	must(t, fsys.Close())
	if text, err := os.ReadFile(filepath.Join(dir, "there")); err != nil || string(text) != "kept" {
		t.Errorf("holds %q, %v", text, err)
	}
}
