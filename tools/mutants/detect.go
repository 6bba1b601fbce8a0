package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// finding is what a run of tests showed.
type finding struct {
	test   string                   // the first that failed; empty where all passed
	how    string                   // in which way, where it was no plain failure
	passed map[string]time.Duration // the tests that passed, and how long each took
}

// hung is how a test fails that does not end.
const hung = "hangs until the test's own time limit"

// ended is how a test fails that takes the whole process with it.
const ended = "ended the process"

// event is one line of test2json; see `go doc test2json`.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// outside names a failure outside of all tests.
const outside = "the package as a whole"

// watch reads the events of one package's tests up to the first failure.
func watch(in io.Reader) (finding, error) {
	f := finding{passed: map[string]time.Duration{}}
	lines := bufio.NewReader(in)
	var w watcher
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			if w.take(e, &f) {
				return f, nil
			}
		}
		if errors.Is(err, io.EOF) {
			f.how = w.how
			if n := len(w.open); n > 0 { // the process ended in it
				f.test, f.how = w.open[n-1], cmp.Or(w.how, ended)
			}
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
}

func (w *watcher) take(e event, f *finding) (failed bool) {
	switch e.Action {
	case "output":
		w.hear(strings.TrimSpace(e.Output))
	case "run":
		w.open = append(w.open, e.Test)
	case "pass", "skip":
		w.open = slices.DeleteFunc(w.open, func(name string) bool { return name == e.Test })
		if e.Test != "" && e.Action == "pass" {
			f.passed[e.Test] = time.Duration(e.Elapsed * float64(time.Second))
		}
	case "fail":
		if e.Test != "" {
			f.test, f.how = e.Test, w.how
			return true
		}
		last := append([]string{outside}, w.open...)
		f.test, f.how = cmp.Or(w.running, last[len(last)-1]), cmp.Or(w.how, ended)
		return true
	}
	return false
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
