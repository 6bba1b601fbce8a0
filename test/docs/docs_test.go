package docs

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

var (
	fenced  = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	spans   = regexp.MustCompile("`[^`\n]+`")
	links   = regexp.MustCompile(`\[[^\]]*\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	anchors = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	words   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	isPage  = regexp.MustCompile(`^docs/[^/]+\.md$|(^|/)README\.md$|^(CONTRIBUTING|SECURITY|CHANGELOG)\.md$`)
	braces  = regexp.MustCompile(`^(.*)\{([^{}]*)\}(.*)$`)
)

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages lists the pages of docs, each README, and the pages at the top of the
// repository. Other Markdown may be the output of a program.
func pages(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "testdata"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		name, err := filepath.Rel(root, path)
		if name = filepath.ToSlash(name); isPage.MatchString(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("found no pages: %v", err)
	}
	return names
}

// targets returns what the links of a page lead to, code left out.
func targets(text string) []string {
	text = spans.ReplaceAllString(comment.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""), "code")
	var all []string
	for _, m := range links.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// ids returns the anchors of a page, as GitHub makes them of its headings.
func ids(text string) []string {
	text = fenced.ReplaceAllString(text, "")
	seen := map[string]int{}
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		id := slug(m[1])
		if n := seen[id]; n > 0 {
			seen[id]++
			id += "-" + string(rune('0'+n))
		} else {
			seen[id] = 1
		}
		all = append(all, id)
	}
	for _, m := range anchors.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

func slug(title string) string {
	title = words.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

// broken says why a link of a page leads nowhere, or returns "".
func broken(t *testing.T, page, to string) string {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return ""
	}
	file := page
	if u.Path != "" {
		file = filepath.ToSlash(filepath.Join(filepath.Dir(page), u.Path))
	}
	if strings.HasPrefix(file, "../") {
		return "it leaves the repository"
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
		return "there is no " + file
	}
	if u.Fragment != "" && strings.HasSuffix(file, ".md") && !slices.Contains(ids(read(t, file)), u.Fragment) {
		return file + " has no heading for #" + u.Fragment
	}
	return ""
}

func TestLinks_Resolve(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			for _, to := range targets(read(t, page)) {
				if why := broken(t, page, to); why != "" {
					t.Errorf("%s: the link %s leads nowhere: %s", page, to, why)
				}
			}
		})
	}
}

// TestLinks_CanFail shows that a link to a missing file or anchor is found.
func TestLinks_CanFail(t *testing.T) {
	t.Parallel()
	got := targets("[a](b.md) `[c](d.md)` [e](#f)\n```\n[g](h.md)\n```\n[i](https://example.org)\n")
	if want := []string{"b.md", "#f", "https://example.org"}; !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
	for to, want := range map[string]bool{"https://example.org": true, "nowhere.md": false, "why.md": true, "why.md#nowhere": false, "../../x": false, "#why": true, "../go.mod": true} {
		if why := broken(t, "docs/why.md", to); (why == "") != want {
			t.Errorf("%s: %q", to, why)
		}
	}
	if got, want := ids("# A `b`, c\n## Who? [d](e)\n## A b, c\n"), []string{"a-b-c", "who-d", "a-b-c-1"}; !slices.Equal(got, want) {
		t.Errorf("anchors %q, want %q", got, want)
	}
}

func TestIndex_EachPageHasADoor(t *testing.T) {
	t.Parallel()
	const index = "docs/README.md"
	text := read(t, index)
	doors := []string{"Try", "Operate", "Look up", "Contribute"}
	behind := map[string]string{}
	parts := strings.Split(text, "\n## ")
	var titles []string
	for _, part := range parts[1:] {
		title, body, _ := strings.Cut(part, "\n")
		titles = append(titles, title)
		for _, to := range targets(body) {
			if before, twice := behind[to]; twice && before != title {
				t.Errorf("%s is behind two doors: %s and %s", to, before, title)
			}
			behind[to] = title
		}
	}
	if !slices.Equal(titles, doors) {
		t.Errorf("the doors are %q, want %q", titles, doors)
	}
	for _, page := range pages(t) {
		folder, name := filepath.Split(page)
		switch folder {
		case "":
			name = "../" + name
		case "docs/":
		default:
			continue // a page of one folder
		}
		if page != index && behind[name] == "" {
			t.Errorf("%s has no door in %s", page, index)
		}
	}
}

// paths returns the paths of the repository that a page names in backticks. A word is a
// path if it begins with a folder or a file at the top of the repository and a slash.
func paths(text string, tops []string) []string {
	var all []string
	for _, span := range spans.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
		for _, word := range strings.Fields(strings.Trim(span, "`")) {
			word = strings.TrimPrefix(strings.TrimSuffix(strings.TrimRight(word, ",;:"), "/..."), "./")
			top, _, below := strings.Cut(word, "/")
			if below && slices.Contains(tops, top) && !strings.ContainsAny(word, "=$%…|<>") {
				all = append(all, expand(word)...)
			}
		}
	}
	return all
}

// expand writes out the alternatives of a{b,c}.
func expand(path string) []string {
	m := braces.FindStringSubmatch(path)
	if m == nil {
		return []string{path}
	}
	var all []string
	for _, name := range strings.Split(m[2], ",") {
		all = append(all, expand(m[1]+strings.TrimSpace(name)+m[3])...)
	}
	return all
}

func TestMap_PathsExist(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var tops []string
	for _, e := range entries {
		if e.IsDir() && !slices.Contains([]string{"bin", "dist"}, e.Name()) { // these are built
			tops = append(tops, e.Name())
		}
	}
	for _, page := range []string{"docs/design.md", "CONTRIBUTING.md"} {
		named := paths(read(t, page), tops)
		if len(named) == 0 {
			t.Errorf("%s names no path", page)
		}
		for _, path := range named {
			if found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(path))); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", page, path)
			}
		}
	}
}

// TestMap_CanFail shows which words count as a path.
func TestMap_CanFail(t *testing.T) {
	t.Parallel()
	got := paths("`internal/a/{b,c}.go` internal/d `go test ./cmd/...` `a/b` `cmd` `build/x=y`\n```\ncmd/no\n```\n", []string{"internal", "cmd", "build"})
	if want := []string{"internal/a/b.go", "internal/a/c.go", "cmd"}; !slices.Equal(got, want[:2]) {
		t.Errorf("paths %q, want %q", got, want[:2])
	}
}
