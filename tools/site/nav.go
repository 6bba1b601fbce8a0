package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// entry is one page of the navigation.
type entry struct {
	source string // path of the Markdown file in the repository
	title  string // in the navigation
	about  string // one line of Markdown
}

// door is a group of pages.
type door struct {
	title   string
	entries []entry
}

// listed is the page whose tables are the navigation.
const listed = "docs/README.md"

var (
	doorLine  = regexp.MustCompile(`^## (.+)$`)
	entryLine = regexp.MustCompile(`^\| \[([^\]]+)\]\(([^)#]+\.md)\) \| (.*) \|$`)
)

// readNav reads the navigation. The page with the list comes first.
func readNav(root string) ([]door, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(listed)))
	if err != nil {
		return nil, fmt.Errorf("read the navigation: %w", err)
	}
	doors := []door{{entries: []entry{{source: listed, title: "All pages"}}}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if m := doorLine.FindStringSubmatch(line); m != nil {
			doors = append(doors, door{title: m[1]})
		}
		if m := entryLine.FindStringSubmatch(line); m != nil {
			last := &doors[len(doors)-1]
			last.entries = append(last.entries, entry{path.Join(path.Dir(listed), m[2]), m[1], m[3]})
		}
	}
	return doors, checkNav(root, doors)
}

// checkNav returns an error for a page of docs/ that the navigation lacks, and for one that it has twice.
func checkNav(root string, doors []door) error {
	var known []string
	for _, e := range flat(doors) {
		if slices.Contains(known, e.source) {
			return fmt.Errorf("%s lists %s twice", listed, e.source)
		}
		known = append(known, e.source)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return fmt.Errorf("list the pages: %w", err)
	}
	for _, page := range pages {
		if name := "docs/" + filepath.Base(page); !slices.Contains(known, name) {
			return fmt.Errorf("%s does not list %s", listed, name)
		}
	}
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s does not list %s", listed, name)
		}
	}
	return nil
}

// flat returns all entries in order.
func flat(doors []door) (all []entry) {
	for _, d := range doors {
		all = append(all, d.entries...)
	}
	return all
}
