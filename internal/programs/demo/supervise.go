package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Environment of the inner process, set by [Supervise] and by nobody else.
const (
	envDir     = "DOCKET_DEMO_DIR"
	envCache   = "DOCKET_DEMO_CACHE"
	envFolder  = "DOCKET_DEMO_FOLDER"
	envCommand = "DOCKET_DEMO_COMMAND"
)

// DocketCommand is how a user runs docket, as found by [Supervise] in the environment of the outer process.
func DocketCommand() Docket {
	return Docket{Folder: os.Getenv(envFolder), Command: os.Getenv(envCommand)}
}

// dirPrefix is how the directories of demos are called, so that what a killed one left behind is found again.
const dirPrefix = "docket-demo-"

// Inner says whether this process is the one that does the work, and with which directories.
func Inner() (dir, cache string, inner bool) {
	dir = os.Getenv(envDir)
	return dir, os.Getenv(envCache), dir != ""
}

// Supervise runs this program once more, with the same arguments, as the process that does the work, and returns its
// exit status. That process has a temporary directory for itself and goes when this one goes. Where this one is root
// the other is not: Postgres refuses to run as root.
//
// When ctx ends the other is asked to stop and waited for. The directory is removed in any case, and a half unpacked
// Postgres in the cache.
func Supervise(ctx context.Context, args []string, stdout, stderr io.Writer) (status int, err error) {
	who, err := unprivileged()
	if err != nil {
		return 1, err
	}
	dir, err := who.tempDir()
	if err != nil {
		return 1, err
	}
	cache := who.cacheDir(dir)
	defer func() {
		if rerr := errors.Join(os.RemoveAll(unpacking(cache, dir)), os.RemoveAll(dir)); rerr != nil && err == nil {
			status, err = 1, fmt.Errorf("clean up: %w", rerr)
		}
	}()
	self, err := executable()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Dir = dir
	docket := findDocket()
	cmd.Env = append(innerEnv(os.Environ()), "HOME="+dir, "TMPDIR="+dir, envDir+"="+dir, envCache+"="+cache,
		envFolder+"="+docket.Folder, envCommand+"="+docket.Command)
	cmd.SysProcAttr = procAttr(syscall.SIGTERM)
	cmd.SysProcAttr.Credential = who.credential()
	return runToEnd(ctx, cmd)
}

// executable is a path of this program that works for an account that may not enter its directory.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return self, nil
}

// innerEnv leaves out what would steer Postgres, its clients or the programs behind the demo's back.
func innerEnv(environ []string) []string {
	var kept []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case name == EnvPostgresBin || name == EnvPostgresRepository:
		case name == "HOME", name == "TMPDIR", strings.HasPrefix(name, "PG"), strings.HasPrefix(name, "DOCKET_"):
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// runToEnd runs cmd. It owns a thread meanwhile: the death signal is bound to the thread that started the process.
func runToEnd(ctx context.Context, cmd *exec.Cmd) (int, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start the demo's inner process: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, fmt.Errorf("wait for the demo's inner process: %w", err)
	}
	if exit != nil && !exit.Exited() {
		return 1, fmt.Errorf("the demo's inner process ended by %w", exit)
	}
	return cmd.ProcessState.ExitCode(), nil
}

// cacheDir is where fetched archives are kept from demo to demo; inside dir, and so not kept, where there is no place
// for them. An account other than ours gets a cache that nobody else reads or writes.
func (w owner) cacheDir(dir string) string {
	base, err := os.UserCacheDir()
	if w.other {
		base, err = "/var/cache", nil
	}
	cache := filepath.Join(base, "docket-demo")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(cache), 0o755)
	}
	if err == nil {
		err = os.Mkdir(cache, 0o700)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return filepath.Join(dir, "cache")
	}
	if info, err := os.Lstat(cache); err != nil || !info.IsDir() || w.own(cache) != nil {
		return filepath.Join(dir, "cache")
	}
	return cache
}

// tempDir makes the directory of one demo, owned by the account that uses it.
func (w owner) tempDir() (string, error) {
	parent := os.TempDir()
	if w.other && !passable(parent) {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, dirPrefix)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		err = w.own(dir)
	}
	if err != nil {
		return "", fmt.Errorf("make a directory for the demo: %w", err)
	}
	return dir, nil
}

// passable says whether every account may pass through dir and all its parents.
func passable(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// waitFor polls until done, at most for limit.
func waitFor(ctx context.Context, limit time.Duration, done func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done(ctx) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
