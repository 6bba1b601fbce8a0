package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	cells = regexp.MustCompile("`[^`]+`|[a-z0-9/]+")
	test  = regexp.MustCompile("^`([A-Z][a-zA-Z0-9_]+)…?`$")
	funcs = regexp.MustCompile(`(?m)^func (Test\w+)`)
)

// shown is a test that the page of faults names, and the package before it.
type shown struct{ folder, test string }

// shownBy reads the second column of the table of faults. A package holds for all tests behind it.
func shownBy(page string, folders map[string]string) []shown {
	_, table, _ := strings.Cut(page, "\n| fault | shown by |\n")
	var all []shown
	for line := range strings.Lines(table) {
		row := strings.Split(line, "|")
		if len(row) != 4 {
			break
		}
		folder := ""
		for _, word := range cells.FindAllString(row[2], -1) {
			if name := test.FindStringSubmatch(word); name != nil {
				all = append(all, shown{folder, name[1]})
			} else if folders[word] != "" {
				folder = folders[word]
			}
		}
	}
	return all
}

func TestFaults_NamedTestsExist(t *testing.T) {
	t.Parallel()
	folders, tests := map[string]string{}, map[string][]string{}
	for _, top := range []string{"internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			folder := filepath.ToSlash(filepath.Dir(path))
			text, err := os.ReadFile(path)
			for _, name := range funcs.FindAllStringSubmatch(string(text), -1) {
				tests[folder] = append(tests[folder], name[1])
			}
			parts := strings.Split(folder, "/")
			for i := range parts {
				folders[strings.Join(parts[i:], "/")] = folder
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	named := shownBy(read(t, "docs/reliability.md"), folders)
	if len(named) < 70 {
		t.Errorf("the table names %d tests", len(named))
	}
	for _, n := range named {
		if !strings.Contains(strings.Join(tests[n.folder], " "), n.test) {
			t.Errorf("no test of %q is called %s", n.folder, n.test)
		}
	}
}

func TestFaults_CanFail(t *testing.T) {
	t.Parallel()
	page := "\n| fault | shown by |\n|---|---|\n| **a** | |\n| x | sim; e2e `One_Case`, `Two…`; `make y`; store `Three` |\n\n| other | table |\n"
	want := []shown{{"test/e2e", "One_Case"}, {"test/e2e", "Two"}, {"a/store", "Three"}}
	got := shownBy(page, map[string]string{"sim": "test/sim", "e2e": "test/e2e", "store": "a/store"})
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("read %v, want %v", got, want)
	}
}
