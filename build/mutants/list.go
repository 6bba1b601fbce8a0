package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// mutant is one planted bug.
type mutant struct {
	name       string
	breaks     string // the promise, in the words of the contract
	simulation bool   // the black-box simulation is asked too, for the record
	tests      []stage
	hunks      []hunk
}

// stage is one run of `go test` on one package that has to notice.
type stage struct {
	args        string // the package, and what else go test is told
	integration bool   // needs real servers
}

func (s stage) String() string {
	if s.integration {
		return s.args + " (integration)"
	}
	return s.args
}

// hunk replaces whole lines of a file.
type hunk struct {
	file     string // from the module's root, with slashes
	old, now string
}

// readAll reads every list, in the order of their names.
func readAll(from fs.FS) ([]mutant, error) {
	names, err := fs.Glob(from, "list/*.txt")
	if err != nil {
		return nil, err
	}
	var all []mutant
	seen := map[string]bool{}
	for _, name := range names {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, err
		}
		some, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(name), err)
		}
		for _, m := range some {
			if seen[m.name] {
				return nil, fmt.Errorf("%s: two mutants are called %s", path.Base(name), m.name)
			}
			seen[m.name] = true
		}
		all = append(all, some...)
	}
	return all, nil
}

// parse reads a list. What stands before the first mutant is for the reader.
//
//	== NAME
//	breaks: PROMISE
//	test: PACKAGE [ARGUMENT...]         as often as there are stages, cheap ones first
//	integration: PACKAGE [ARGUMENT...]  likewise, after the others
//	simulation                          ask that too
//	@@ FILE
//	 a line that stays
//	-a line that goes
//	+a line that comes
func parse(text string) ([]mutant, error) {
	_, rest, found := strings.Cut("\n"+text, "\n== ")
	if !found {
		return nil, errors.New("no mutant in it")
	}
	var all []mutant
	for entry := range strings.SplitSeq(rest, "\n== ") {
		m, err := parseOne(entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func parseOne(entry string) (mutant, error) {
	head, body, _ := strings.Cut(entry, "\n@@ ")
	lines := strings.Split(head, "\n")
	m := mutant{name: strings.TrimSpace(lines[0])}
	for _, line := range lines[1:] {
		if err := m.field(strings.TrimSpace(line)); err != nil {
			return m, err
		}
	}
	if body != "" {
		for text := range strings.SplitSeq(body, "\n@@ ") {
			h, err := parseHunk(text)
			if err != nil {
				return m, err
			}
			m.hunks = append(m.hunks, h)
		}
	}
	switch {
	case m.name == "" || strings.ContainsAny(m.name, " ,"):
		return m, errors.New("its name is empty or has a space or a comma in it")
	case m.breaks == "":
		return m, errors.New("it does not say what it breaks")
	case len(m.tests) == 0:
		return m, errors.New("it names no test")
	case len(m.hunks) == 0:
		return m, errors.New("it changes nothing")
	}
	return m, nil
}

func (m *mutant) field(line string) error {
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch key {
	case "":
	case "breaks":
		m.breaks = value
	case "test":
		m.tests = append(m.tests, stage{args: value})
	case "integration":
		m.tests = append(m.tests, stage{args: value, integration: true})
	case "simulation":
		m.simulation = true
	default:
		return fmt.Errorf("a line that is not understood: %q", line)
	}
	return nil
}

func parseHunk(text string) (hunk, error) {
	file, body, _ := strings.Cut(text, "\n")
	h := hunk{file: strings.TrimSpace(file)}
	var old, now strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(body, "\n"), "\n") {
		if line == "" {
			line = " " // editors cut it off a blank line that stays
		}
		switch line[0] {
		case ' ':
			old.WriteString(line[1:] + "\n")
			now.WriteString(line[1:] + "\n")
		case '-':
			old.WriteString(line[1:] + "\n")
		case '+':
			now.WriteString(line[1:] + "\n")
		default:
			return h, fmt.Errorf("a line of %s begins with none of space, - and +: %q", h.file, line)
		}
	}
	h.old, h.now = old.String(), now.String()
	if h.file == "" || h.old == "" || h.old == h.now {
		return h, fmt.Errorf("the change to %q has no lines to find, or changes none", h.file)
	}
	return h, nil
}
