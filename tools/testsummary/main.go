// Command testsummary turns the event stream of `go test -json` back into what
// `go test` prints, and counts what ran.
//
// Each suite is one run, as in testsummary -suite fast -against "no container". It
// reads the stream from standard input, prints it as it comes, and appends one line
// to the file of -to. It ends with 1 if anything failed, or if nothing ran at all.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	suite := flag.String("suite", "", "name of the suite")
	against := flag.String("against", "", "the servers that the suite ran against")
	to := flag.String("to", "", "file that the line of the summary is appended to")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *suite, *against, *to); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, suite, against, to string) error {
	t := newTally()
	if err := t.read(in, out); err != nil {
		return err
	}
	line := fmt.Sprintf("%-12s %s; ran against: %s\n", suite, t, against)
	if err := appendLine(to, line); err != nil {
		return err
	}
	switch {
	case t.failed > 0:
		return fmt.Errorf("suite %s: %d failed", suite, t.failed)
	case t.passed == 0:
		return fmt.Errorf("suite %s: no test ran", suite)
	}
	return nil
}

func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(line); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// tally counts finished tests, subtests among them, and by package what failed.
type tally struct {
	passed, failed, skipped int
	packages                map[string]int      // failures of each package that had tests
	output                  map[string][]string // of tests that have not ended, by package and test
}

func newTally() *tally {
	return &tally{packages: map[string]int{}, output: map[string][]string{}}
}

func (t *tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped in %d packages", t.passed, t.failed, t.skipped, len(t.packages))
}

// read prints the stream and counts it. Lines that are no events, such as those of
// a build that failed, are printed as they are.
func (t *tally) read(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				_, _ = fmt.Fprint(out, line)
			} else {
				t.take(e, out)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
	}
}

func (t *tally) take(e event, out io.Writer) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "output", "build-output":
		switch {
		case e.Test != "":
			t.output[key] = append(t.output[key], e.Output)
		case e.Output != "PASS\n": // go test prints it only when told to be verbose
			_, _ = fmt.Fprint(out, e.Output)
		}
	case "pass", "skip", "fail":
		if e.Test == "" {
			t.endPackage(e, out)
			return
		}
		t.count(e)
		if e.Action == "fail" {
			printTest(out, t.output[key])
		}
		delete(t.output, key)
	}
}

func (t *tally) count(e event) {
	switch e.Action {
	case "pass":
		t.packages[e.Package] += 0
		t.passed++
	case "skip":
		t.packages[e.Package] += 0
		t.skipped++
	case "fail":
		t.packages[e.Package]++
		t.failed++
	}
}

// endPackage accounts for a package that failed without a failed test: a build
// error, a panic, a goroutine left behind.
func (t *tally) endPackage(e event, out io.Writer) {
	if e.Action != "fail" {
		return
	}
	if t.packages[e.Package] == 0 {
		t.count(e)
	}
	for key, lines := range t.output {
		if strings.HasPrefix(key, e.Package+"\x00") {
			printTest(out, lines)
			delete(t.output, key)
		}
	}
}

// printTest prints what a test wrote, without the framing of -v.
func printTest(out io.Writer, lines []string) {
	for _, line := range lines {
		if !strings.HasPrefix(line, "=== ") {
			_, _ = fmt.Fprint(out, line)
		}
	}
}
