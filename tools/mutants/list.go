package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
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

// stage is one run of the tests of one package, some or all, that has to notice.
type stage struct {
	pkg         string // as the go command names it: ./internal/record/home
	tests       string // their names, joined by |; empty: all
	integration bool   // they need real servers
}

// names are the tests by name; none: all.
func (s stage) names() []string {
	if s.tests == "" {
		return nil
	}
	return strings.Split(s.tests, "|")
}

func joined(tests []string) string { return strings.Join(tests, "|") }

// where is the package, and how it is built.
func (s stage) where() string {
	pkg := strings.TrimPrefix(s.pkg, "./")
	if s.integration {
		pkg += " (integration)"
	}
	return pkg
}

func (s stage) String() string {
	if s.tests == "" {
		return s.where()
	}
	return s.where() + " " + s.tests
}

var testName = regexp.MustCompile(`^Test[A-Z]\w*$`)

func parseStage(text string, integration bool) (stage, error) {
	words := strings.Fields(text)
	if len(words) == 0 || !strings.HasPrefix(words[0], "./") {
		return stage{}, fmt.Errorf("no package: %q", text)
	}
	for _, name := range words[1:] {
		if !testName.MatchString(name) {
			return stage{}, fmt.Errorf("not the name of a test: %q", name)
		}
	}
	return stage{words[0], joined(words[1:]), integration}, nil
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

// parse reads a list. Text before the first mutant is for the reader.
//
//	== NAME
//	breaks: PROMISE
//	test: PACKAGE [TEST...]         as often as there are stages, cheap ones first; without names all tests of the package
//	integration: PACKAGE [TEST...]  likewise, after the others
//	simulation                      ask that too
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
	case "test", "integration":
		s, err := parseStage(value, key == "integration")
		if err != nil {
			return err
		}
		m.tests = append(m.tests, s)
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
