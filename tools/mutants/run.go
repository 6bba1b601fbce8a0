package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// bench builds test binaries and runs them, each in a process group of its own, and counts what that costs.
type bench struct {
	root, scratch string
	test2json     string // the program; looked up once

	mu    sync.Mutex
	spent time.Duration
	built int
}

func newBench(ctx context.Context, root, scratch string) (*bench, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "-n", "test2json").Output()
	if err != nil {
		return nil, fmt.Errorf("find test2json: %w", err)
	}
	return &bench{root: root, scratch: scratch, test2json: strings.TrimSpace(string(out))}, nil
}

// cpu is the processor time that all builds and runs took so far.
func (b *bench) cpu() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

func (b *bench) count(state *os.ProcessState) {
	if state == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent += state.UserTime() + state.SystemTime()
}

func (b *bench) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// goTool runs the go command in the module's root.
func (b *bench) goTool(ctx context.Context, args ...string) error {
	cmd := b.command(ctx, b.root, "go", args...)
	said, err := cmd.CombinedOutput()
	b.count(cmd.ProcessState)
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(string(said)), " "))
	}
	return nil
}

// binary is the test binary of a package, as an overlay has it.
type binary struct {
	file string
	dir  string // where its tests run
}

// build makes one. It is stripped: nobody debugs it, and the linker is half of what a mutant costs.
func (b *bench) build(ctx context.Context, overlay string, s stage) (binary, error) {
	b.mu.Lock()
	b.built++
	file := filepath.Join(b.scratch, fmt.Sprintf("%d.test", b.built))
	b.mu.Unlock()
	tags := "synctests"
	if s.integration {
		tags = "integration"
	}
	dir, pkg, where := filepath.Join(b.root, filepath.FromSlash(s.pkg)), s.pkg, []string{"test"}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil { // a module of its own
		pkg, where = ".", []string{"-C", dir, "test"}
	}
	err := b.goTool(ctx, append(where, "-c", "-o", file, "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-tags", tags, pkg)...)
	if err != nil {
		return binary{}, fmt.Errorf("the tests of %s do not build: %w", s.pkg, err)
	}
	if _, err := os.Stat(file); err != nil {
		return binary{}, fmt.Errorf("%s has no tests", s.pkg)
	}
	return binary{file, filepath.Join(b.root, filepath.FromSlash(s.pkg))}, nil
}

// patience is how much longer than a test binary's own limit the runner waits for its end.
const patience = 30 * time.Second

// ask runs the tests of a binary up to the first that fails, or ends them after limit.
func (b *bench) ask(ctx context.Context, bin binary, limit time.Duration, args ...string) (finding, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+patience)
	defer cancel()
	tests := b.command(ctx, bin.dir, bin.file, append([]string{"-test.v=test2json", "-test.paniconexit0", "-test.failfast", "-test.timeout=" + limit.String()}, args...)...)
	events := b.command(ctx, bin.dir, b.test2json)
	through, out, err := pipes()
	if err != nil {
		return finding{}, err
	}
	tests.Stdout, tests.Stderr, events.Stdin = through.w, through.w, through.r
	events.Stdout = out.w
	defer through.close()
	defer out.close()
	if err := tests.Start(); err != nil {
		return finding{}, err
	}
	if err := events.Start(); err != nil {
		return finding{}, errors.Join(err, tests.Cancel(), tests.Wait())
	}
	through.close() // both have them
	_ = out.w.Close()
	f, errWatch := watch(out.r)
	if f.test != "" || errWatch != nil {
		_ = tests.Cancel() // it has shown what there is to see
		_, _ = io.Copy(io.Discard, out.r)
	}
	errTests := tests.Wait()
	errEvents := events.Wait()
	b.count(tests.ProcessState)
	b.count(events.ProcessState)
	switch {
	case ctx.Err() != nil:
		return finding{}, fmt.Errorf("the runner's own time is over: %w", ctx.Err())
	case errWatch != nil:
		return finding{}, errWatch
	case f.test == "" && errTests != nil: // it ended before it could say which test it was in
		f.test, f.how = outside, cmp.Or(f.how, ended)
	case errEvents != nil:
		return f, errEvents
	}
	return f, nil
}

// ends are those of a pipe.
type ends struct{ r, w *os.File }

func (e ends) close() {
	_ = e.r.Close()
	_ = e.w.Close()
}

func pipes() (a, b ends, err error) {
	if a.r, a.w, err = os.Pipe(); err != nil {
		return a, b, err
	}
	if b.r, b.w, err = os.Pipe(); err != nil {
		a.close()
	}
	return a, b, err
}
