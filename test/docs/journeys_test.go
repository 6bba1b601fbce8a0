package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostLines is how long a file of a journey may be. A longer one is not read in one go.
const mostLines = 400

var (
	function = regexp.MustCompile("`((?:[a-zA-Z]+\\.)?[a-zA-Z]+)`")
	declared = regexp.MustCompile(`(?m)^func (?:\([a-zA-Z]+ \*?([a-zA-Z]+)[^)]*\) )?([a-zA-Z]+)[(\[]|^\t([a-zA-Z]+)\(.*\)|^type ([a-zA-Z]+) `)
)

// journey is a section of the design page that follows one thing through the code.
type journey struct {
	title string
	steps string
	files []string // in reading order
}

// journeys reads the part "Four journeys" of a page.
func journeys(page, text string) []journey {
	_, part, _ := strings.Cut(text, "\n## Four journeys\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var all []journey
	for _, section := range strings.Split(part, "\n### ")[1:] {
		j := journey{}
		j.title, section, _ = strings.Cut(section, "\n")
		j.steps, section, _ = strings.Cut(section, "\n| order |")
		for _, m := range links.FindAllStringSubmatch(section, -1) {
			j.files = append(j.files, filepath.ToSlash(filepath.Join(filepath.Dir(page), m[1])))
		}
		all = append(all, j)
	}
	return all
}

// functions returns the functions that the steps of a journey name, each once.
func (j journey) functions() []string {
	var all []string
	for _, m := range function.FindAllStringSubmatch(j.steps, -1) {
		if !slices.Contains(all, m[1]) {
			all = append(all, m[1])
		}
	}
	return all
}

// declares returns the names that Go files declare: functions, methods as Type.method and as method, and types.
func declares(files map[string]string) map[string]bool {
	names := map[string]bool{}
	for file, text := range files {
		folder := filepath.Base(filepath.Dir(file))
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			for _, name := range m[1:] {
				names[name] = true
			}
			names[m[1]+"."+m[2]] = true
			names[folder+"."+m[2]+m[4]] = true
		}
	}
	return names
}

func TestJourneys_FilesAreShort(t *testing.T) {
	t.Parallel()
	all := journeys("docs/design.md", read(t, "docs/design.md"))
	if len(all) != 4 {
		t.Fatalf("%d journeys, want 4", len(all))
	}
	for _, j := range all {
		if len(j.files) == 0 {
			t.Errorf("%s: no file", j.title)
		}
		for _, file := range j.files {
			info, err := os.Stat(filepath.Join(root, file))
			if err != nil || info.IsDir() {
				t.Errorf("%s: %s is not a file", j.title, file)
				continue
			}
			if n := strings.Count(read(t, file), "\n"); n > mostLines {
				t.Errorf("%s: %s has %d lines, want at most %d", j.title, file, n, mostLines)
			}
		}
	}
}

// A step names functions. Each of them is in a file that the journey lists, so no jump is left to the reader.
func TestJourneys_NoUnexplainedJump(t *testing.T) {
	t.Parallel()
	for _, j := range journeys("docs/design.md", read(t, "docs/design.md")) {
		texts := map[string]string{}
		for _, file := range j.files {
			if strings.HasSuffix(file, ".go") {
				texts[file] = read(t, file)
			}
		}
		names := declares(texts)
		for _, name := range j.functions() {
			if !names[name] {
				t.Errorf("%s: %s is in none of the files to read", j.title, name)
			}
		}
	}
}

func TestJourneys_CanFail(t *testing.T) {
	t.Parallel()
	const page = "\n## Four journeys\n\n### A\n\n1. `Thing.do` calls `part`, then `pkg.Make`.\n\n| order | read |\n|---|---|\n| 1 | [x](../pkg/x.go), [y](../pkg/y.go) |\n\n## Next\n### B\n"
	all := journeys("docs/d.md", page)
	if len(all) != 1 || !slices.Equal(all[0].files, []string{"pkg/x.go", "pkg/y.go"}) || !slices.Equal(all[0].functions(), []string{"Thing.do", "part", "pkg.Make"}) {
		t.Fatalf("read %+v", all)
	}
	names := declares(map[string]string{"pkg/x.go": "package pkg\n\nfunc (t *Thing) do() {}\n\nfunc Make() {}\n\ntype Port interface {\n\tAsk(n int) error\n}\n"})
	for name, want := range map[string]bool{"Thing.do": true, "do": true, "pkg.Make": true, "Ask": true, "part": false, "Thing.part": false} {
		if names[name] != want {
			t.Errorf("%s declared: %t, want %t", name, names[name], want)
		}
	}
}
