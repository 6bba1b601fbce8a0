package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockName = "lock"
	dataName = "data"
)

// claim marks dir as in use until release is called or this process ends.
func claim(dir string) (release func(), err error) {
	// The file gets its name only once it is locked: without a lock, another demo may take it for left behind.
	file, err := os.CreateTemp(dir, "lock-")
	if err != nil {
		return nil, fmt.Errorf("claim the demo's directory: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, lockName))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("claim the demo's directory: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// sweep stops and removes what demos of this account left behind when they were killed, and returns how many.
func sweep(ctx context.Context, parent string) (int, error) {
	dirs, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*"))
	if err != nil {
		return 0, fmt.Errorf("look for earlier demos: %w", err)
	}
	swept := 0
	var errs []error
	for _, dir := range dirs {
		if !abandoned(dir) {
			continue
		}
		if err := stopPostmaster(ctx, filepath.Join(dir, dataName)); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(dir))
		swept++
	}
	return swept, errors.Join(errs...)
}

// abandoned says whether dir belongs to a demo of this user whose process is gone. A directory without a lock file belongs
// to one that is just starting.
func abandoned(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return false
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // gives the lock back too
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// stopPostmaster stops the server of a data directory by the directory's own pid file, if it runs.
func stopPostmaster(ctx context.Context, data string) error {
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pid of an earlier demo's Postgres: %w", err)
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !serves(ctx, pid, data) {
		return nil //nolint:nilerr // the number may have gone to another process since
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		return fmt.Errorf("stop an earlier demo's Postgres (pid %d): %w", pid, err)
	}
	gone := func(ctx context.Context) bool { return !serves(ctx, pid, data) }
	if err := waitFor(ctx, 10*time.Second, gone); err != nil {
		return fmt.Errorf("wait for an earlier demo's Postgres (pid %d) to stop: %w", pid, err)
	}
	return nil
}

// serves says whether the process is a server of that data directory: a postmaster works in its data directory and
// has it on its command line.
func serves(ctx context.Context, pid int, data string) bool {
	if runtime.GOOS == "linux" {
		cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
		return err == nil && cwd == data
	}
	command, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(command), data)
}
