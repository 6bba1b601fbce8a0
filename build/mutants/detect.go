package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// finding is what a run of tests showed.
type finding struct {
	test   string // the first that failed; empty where all passed
	how    string // in which way, where it was no plain failure
	passed int    // tests that passed
}

// command runs the go command in a directory and hands its standard output to read; what it says on standard error
// comes back.
type command func(ctx context.Context, dir string, args []string, read func(io.Reader) error) (stderr string, err error)

// goCommand runs the real one, in a process group of its own that ends with ctx.
func goCommand(ctx context.Context, dir string, args []string, read func(io.Reader) error) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	errRead := read(out)
	if errRead != nil {
		_ = cmd.Cancel()
	}
	return stderr.String(), errors.Join(errRead, cmd.Wait())
}

// hung is how a test fails that does not end.
const hung = "hangs until the test's own time limit"

// errEnough ends a run of tests that has shown what there is to see.
var errEnough = errors.New("a test failed")

// event is one line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	FailedBuild string
}

// watch reads the events of one package's tests up to the first failure. A build that fails is an error and no finding:
// the mutant was not seen by any test.
func watch(in io.Reader) (finding, error) {
	var f finding
	lines := bufio.NewReader(in)
	var w watcher
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			if failed, err := w.take(e, &f); failed || err != nil {
				return f, err
			}
		}
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return f, err
		}
	}
}

// watcher remembers what the output said before a failure is told as such.
type watcher struct {
	how     string
	running string // the first of the tests that a panic lists as running
	listing bool
	open    []string // tests that began and did not end
	build   []string
}

func (w *watcher) take(e event, f *finding) (failed bool, err error) {
	switch e.Action {
	case "build-output":
		w.build = append(w.build, strings.TrimSpace(e.Output))
	case "output":
		w.hear(strings.TrimSpace(e.Output))
	case "run":
		w.open = append(w.open, e.Test)
	case "pass":
		if e.Test != "" {
			f.passed++
			w.open = slices.DeleteFunc(w.open, func(name string) bool { return name == e.Test })
		}
	case "fail":
		switch {
		case e.FailedBuild != "":
			return false, fmt.Errorf("%s does not build: %s", e.FailedBuild, strings.Join(w.build, " | "))
		case e.Test != "":
			f.test, f.how = e.Test, w.how
		case w.how == "" && len(w.open) == 0:
			return false, fmt.Errorf("%s failed without a failed test", e.Package)
		default:
			last := append([]string{"the package as a whole"}, w.open...)
			f.test, f.how = cmp.Or(w.running, last[len(last)-1]), cmp.Or(w.how, "ended the process")
		}
		return true, nil
	}
	return false, nil
}

// hear notes the ways to fail that are not a test's own word.
func (w *watcher) hear(line string) {
	switch {
	case strings.HasPrefix(line, "panic: test timed out"):
		w.how = hung
	case strings.HasPrefix(line, "panic: deadlock"), strings.HasPrefix(line, "fatal error: all goroutines are asleep"):
		w.how = "deadlock"
	case strings.HasPrefix(line, "panic: ") && w.how == "", strings.HasPrefix(line, "fatal error: ") && w.how == "":
		w.how = "panic"
	case strings.HasPrefix(line, "goleak: "):
		w.how = "goroutine left behind"
	case line == "running tests:":
		w.listing = true
	case w.listing:
		if name, _, ok := strings.Cut(line, " ("); ok && w.running == "" {
			w.running = name
		}
		w.listing = false
	}
}
