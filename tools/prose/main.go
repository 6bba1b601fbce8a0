// Command prose checks the English of the repository against the rules that a
// program can hold: no sentence begins with "What" or "Who", no banned phrase,
// at most 25 words a sentence, and at most 100 columns a line.
//
//	go run ./tools/prose
//
// It reads pages, alerts, the Go folders of clean.txt, and the subjects of commits
// that origin/main does not have. Pages of later.txt are left out. Code is never
// checked: neither fenced blocks nor text in backticks. It prints one line for each
// finding, and ends with 1 if it has found one.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var isPage = regexp.MustCompile(`^docs/[^/]+\.md$|(^|/)(README|PULL_REQUEST_TEMPLATE)\.md$|^(CONTRIBUTING|SECURITY|CHANGELOG)\.md$`)

// Finding is one place that breaks a rule.
type Finding struct {
	File string // relative to the repository, or "commit"
	Line int    // from 1; 0 of a commit
	Rule string
	Text string
}

// String renders a finding as FILE:LINE: RULE: TEXT.
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", f.File, f.Rule, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Text)
}

func main() {
	root := flag.String("root", ".", "folder of the repository")
	flag.Parse()
	code, err := run(context.Background(), os.Stdout, *root, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run checks the whole repository, or only the files and Go folders in args.
func run(ctx context.Context, out io.Writer, root string, args []string) (int, error) {
	findings, err := collect(ctx, root, args)
	if err != nil {
		return 1, err
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	for _, f := range findings {
		fmt.Fprintln(out, f)
	}
	if len(findings) > 0 {
		fmt.Fprintf(out, "prose: %d findings; the rules are in CONTRIBUTING.md\n", len(findings))
		return 1, nil
	}
	return 0, nil
}

func collect(ctx context.Context, root string, args []string) ([]Finding, error) {
	if len(args) > 0 {
		return named(root, args)
	}
	pages, err := pages(root)
	if err != nil {
		return nil, err
	}
	later, err := list(filepath.Join(root, "tools", "prose", "later.txt"))
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, l := range later {
		if !slices.Contains(pages, l.name) {
			all = append(all, Finding{"tools/prose/later.txt", l.line, "list", l.name + " does not exist"})
		}
	}
	for _, page := range pages {
		if slices.ContainsFunc(later, func(l entry) bool { return l.name == page }) {
			continue
		}
		found, err := file(root, page)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	clean, err := list(filepath.Join(root, "tools", "prose", "clean.txt"))
	if err != nil {
		return nil, err
	}
	for _, c := range clean {
		found, err := goFolder(root, c.name)
		if err != nil {
			all = append(all, Finding{"tools/prose/clean.txt", c.line, "list", err.Error()})
			continue
		}
		all = append(all, found...)
	}
	found, err := commits(ctx, root)
	if err != nil {
		return nil, err
	}
	return append(all, found...), nil
}

// named checks the files and Go folders that somebody asked for.
func named(root string, args []string) ([]Finding, error) {
	var all []Finding
	for _, arg := range args {
		info, err := os.Stat(filepath.Join(root, arg))
		if err != nil {
			return nil, err
		}
		check := file
		if info.IsDir() {
			check = goFolder
		}
		found, err := check(root, filepath.ToSlash(filepath.Clean(arg)))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// pages lists the pages of docs, each README, the pages at the top of the repository,
// and the rules of the alerts. Other Markdown may be the output of a program.
func pages(root string) ([]string, error) {
	names := []string{"deploy/prometheus/docket.rules.yml"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && slices.Contains([]string{".git", "bin", "dist", "testdata"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if isPage.MatchString(name) {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// file checks one page, one file of rules, or one Go file.
func file(root, name string) ([]Finding, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(name, ".yml"):
		return alerts(name, text)
	case strings.HasSuffix(name, ".go"):
		return goFile(name, text)
	case name == "CHANGELOG.md":
		return markdown(name, unreleased(string(text))), nil
	}
	return markdown(name, string(text)), nil
}

// An entry is a line of a list, with the number of the line.
type entry struct {
	name string
	line int
}

// list reads a file with one name a line; # begins a comment.
func list(path string) ([]entry, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			entries = append(entries, entry{line, i + 1})
		}
	}
	return entries, nil
}
