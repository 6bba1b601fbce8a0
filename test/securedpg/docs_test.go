package securedpg

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/security.md names exists in the named package, and runs by the given command. -run also takes
// the beginning of a name.
func TestDocs_NamedTestsExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([IU]) \\./(\\S+) -run (\\w+)`").FindAllStringSubmatch(string(text), -1)
	if rows := strings.Count(string(text), "\n| ") - 1; rows < 14 || len(named) < 2*rows {
		t.Errorf("%d rows of threats name %d tests", rows, len(named))
	}
	for _, name := range named {
		files, err := filepath.Glob("../../" + name[2] + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runs := name[1] == "I" || !strings.HasPrefix(string(source), "//go:build")
			found = found || runs && strings.Contains(string(source), "\nfunc "+name[3])
		}
		if !found {
			t.Errorf("%s has no test %s that %s runs", name[2], name[3], name[1])
		}
	}
}
