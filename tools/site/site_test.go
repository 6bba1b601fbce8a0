package main

import (
	"bytes"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"golang.org/x/net/html"
)

const repository = "../.."

// whole is the site of this repository.
func whole(t *testing.T, change ...func(*config)) files {
	t.Helper()
	c := config{root: repository, base: "/docket/"}
	for _, f := range change {
		f(&c)
	}
	made, err := build(c)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// element is an element of a page with its attributes.
type element struct {
	name       string
	attributes map[string]string
}

func elements(t *testing.T, page []byte) (all []element) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		e := element{n.Data, map[string]string{}}
		for _, a := range n.Attr {
			e.attributes[a.Key] = a.Val
		}
		all = append(all, e)
	}
	return all
}

func ids(t *testing.T, page []byte) map[string]bool {
	all := map[string]bool{}
	for _, e := range elements(t, page) {
		if id, has := e.attributes["id"]; has {
			if all[id] {
				t.Errorf("the id %s is there twice", id)
			}
			all[id] = true
		}
	}
	return all
}

// pagesOf are the paths of all pages, sorted.
func pagesOf(f files) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if strings.HasSuffix(name, ".html") {
			all = append(all, name)
		}
	}
	return all
}

// target is the file and the anchor to which an address leads.
func target(t *testing.T, page, address string) (file, id string) {
	t.Helper()
	here := &url.URL{Path: "/docket/" + page}
	to, err := here.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	rest, within := strings.CutPrefix(to.Path, "/docket/")
	if !within {
		t.Errorf("%s: %s leaves the site", page, address)
	}
	return rest, to.Fragment
}

func TestSite_LinksHold(t *testing.T) {
	t.Parallel()
	made := whole(t)
	known := map[string]map[string]bool{}
	for _, page := range pagesOf(made) {
		known[page] = ids(t, made[page])
	}
	links := 0
	for _, page := range pagesOf(made) {
		for _, e := range elements(t, made[page]) {
			address, is := e.attributes["href"]
			if !is || e.name == "a" && strings.Contains(address, "://") {
				continue
			}
			links++
			file, id := target(t, page, address)
			if _, there := made[file]; !there {
				t.Errorf("%s links to %s, which is not there", page, address)
			} else if id != "" && !known[file][id] {
				t.Errorf("%s links to %s, and there is no such anchor", page, address)
			}
		}
	}
	if links < 1500 {
		t.Errorf("only %d links were found", links)
	}
}

func TestSite_NothingFromElsewhere(t *testing.T) {
	t.Parallel()
	made := whole(t)
	for _, page := range pagesOf(made) {
		for _, e := range elements(t, made[page]) {
			for _, name := range []string{"src", "srcset", "poster", "data", "background"} {
				if address, is := e.attributes[name]; is {
					if file, _ := target(t, page, address); strings.Contains(address, ":") || made[file] == nil {
						t.Errorf("%s loads %s", page, address)
					}
				}
			}
			for name := range e.attributes {
				if name == "style" || strings.HasPrefix(name, "on") {
					t.Errorf("%s has %s at %s, which the policy forbids", page, name, e.name)
				}
			}
			if slices.Contains([]string{"iframe", "object", "embed", "style", "base"}, e.name) || e.name == "script" && e.attributes["src"] == "" {
				t.Errorf("%s has %s", page, e.name)
			}
		}
		if !bytes.Contains(made[page], []byte(`content="default-src &#39;none&#39;;`)) && !bytes.Contains(made[page], []byte(`content="default-src 'none';`)) {
			t.Errorf("%s has no policy", page)
		}
	}
	if css := string(made["assets/site.css"]); strings.Contains(css, "url(") || strings.Contains(css, "@import") {
		t.Error("the style loads something")
	}
}

func TestSite_ReachedByNavigation(t *testing.T) {
	t.Parallel()
	made := whole(t)
	for _, page := range pagesOf(made) {
		reached := map[string]bool{"404.html": true}
		text, _, _ := strings.Cut(string(made[page]), "<main")
		for _, e := range elements(t, []byte(text)) {
			if e.name == "a" && !strings.HasPrefix(e.attributes["href"], "#") {
				file, _ := target(t, page, e.attributes["href"])
				reached[file] = true
			}
		}
		for _, other := range pagesOf(made) {
			if !reached[other] {
				t.Errorf("%s does not lead to %s", page, other)
			}
		}
	}
}

func TestSite_SameBytes(t *testing.T) {
	t.Parallel()
	if one, two := whole(t), whole(t); !maps.EqualFunc(one, two, bytes.Equal) {
		t.Error("made twice, it is not the same")
	}
}

// searched returns the addresses that the search in the browser finds.
func searched(t *testing.T, made files) func(query string) []string {
	t.Helper()
	vm := goja.New()
	if _, err := vm.RunString(string(made["assets/search.js"])); err != nil {
		t.Fatal(err)
	}
	if err := vm.Set("raw", string(made["search.json"])); err != nil {
		t.Fatal(err)
	}
	if _, err := vm.RunString("var index = docketSearch.open(JSON.parse(raw)); var find = (query) => docketSearch.find(index, query, 20).map((h) => h.url);"); err != nil {
		t.Fatal(err)
	}
	find, _ := goja.AssertFunction(vm.Get("find"))
	return func(query string) (urls []string) {
		answer, err := find(goja.Undefined(), vm.ToValue(query))
		if err == nil {
			err = vm.ExportTo(answer, &urls)
		}
		if err != nil {
			t.Fatal(err)
		}
		return urls
	}
}

func TestSearch_FindsWords(t *testing.T) {
	t.Parallel()
	made := whole(t)
	find := searched(t, made)
	for query, want := range map[string]string{
		"DocketHolding": "docs/runbook.html#docketholding", "dockethold": "docs/runbook.html#docketholding", "DOCKET_SPOOL_DIR": "docs/settings.html", "spool file": "docs/spool.html",
		"docket why": "docs/why.html", "docket_hold": "docs/metrics.html", "23514": "docs/errors.html", "kafka acl": "docs/kafka-security.html", "changelog": "CHANGELOG.html", "the": "", "context list": "docs/commands.html",
		"report a vulnerability": "SECURITY.html", "restore archived days": "docs/archive.html", "zzzzz": "", "": "", "?!": "",
	} {
		hits := find(query)
		if want == "" {
			if query != "the" && len(hits) > 0 {
				t.Errorf("%q finds %v", query, hits)
			}
			continue
		}
		if i := slices.IndexFunc(hits, func(u string) bool { return strings.HasPrefix(u, want) }); i < 0 || i > 7 {
			t.Errorf("%q finds %s at %d: %q", query, want, i, hits)
		}
	}
	for _, page := range pagesOf(made) {
		if page == "404.html" {
			continue
		}
		_, rest, _ := strings.Cut(string(made[page]), "<title>")
		title, _, _ := strings.Cut(rest, " · Docket<")
		hits := find(html.UnescapeString(title))
		if !slices.ContainsFunc(hits, func(u string) bool { return strings.HasPrefix(u, page) }) {
			t.Errorf("%q does not find %s: %q", title, page, hits)
		}
	}
	for _, hit := range find("kafka") {
		file, _ := target(t, "index.html", hit)
		if made[file] == nil {
			t.Errorf("the search leads to %s", hit)
		}
	}
}

func TestSearch_SmallIndex(t *testing.T) {
	t.Parallel()
	const most = 400 << 10
	if n := len(whole(t)["search.json"]); n > most {
		t.Errorf("the index has %d bytes, more than %d", n, most)
	}
}

func TestStyle_ColoursOfConsole(t *testing.T) {
	t.Parallel()
	console, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(consoleCSS)))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(console)) {
		if name, value, is := strings.Cut(strings.TrimSpace(line), ": "); is && name == "--bg" {
			if !bytes.Contains(whole(t)["assets/site.css"], []byte(name+": "+value[:strings.Index(value, ";")])) {
				t.Errorf("the site has not %s", strings.TrimSpace(line))
			}
		}
	}
	for css, want := range map[string]string{
		":root { --bg: x; --ink: x; --accent: x; --mono: x }\nbody { --bg: y }\n@media (prefers-color-scheme: dark) { :root { --bg: d } }": "",
		":root { --bg: x; --ink: x; --accent: x; --mono: x }\n@media (prefers-color-scheme: dark) { body { --bg: d } }":                    "dark",
		"body { --bg: x }": "--bg",
	} {
		tokens, err := tokensOf(css)
		if want == "" && (err != nil || strings.Contains(tokens, "body")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s gives %q, %v", css, tokens, err)
		}
	}
}

func TestSlug_AsGitHub(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"The API": "the-api", "`docket why` and more": "docket-why-and-more", "Who reads what?": "who-reads-what", "a  b": "a--b", "1. Homes, holds & more": "1-homes-holds--more",
		"[Unreleased]": "unreleased", "snake_case-name": "snake_case-name", "Größe": "größe", "x/y": "xy",
	} {
		d, err := render(entry{source: "x.md"}, []byte("# "+title+"\n"), nil)
		if err != nil || strings.Contains(title, "`") && d.headings[0].id != want || !strings.Contains(title, "`") && slug(strings.Trim(title, "[]")) != want {
			t.Errorf("%q: %v, %v, want %s", title, d.headings, err, want)
		}
	}
	d, err := render(entry{source: "x.md"}, []byte("# a\n## Flags\n## Flags\n## Flags-1\n## Flags\n"), nil)
	var got []string
	for _, h := range d.headings {
		got = append(got, h.id)
	}
	if want := []string{"a", "flags", "flags-1", "flags-1-1", "flags-2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

// tiny is a repository with three pages, changed by the given files.
func tiny(t *testing.T, changes map[string]string) string {
	t.Helper()
	all := map[string]string{
		"README.md": "# Tiny\n\n[page](docs/page.md#part)\n", "CHANGELOG.md": "# Changes\n",
		"docs/README.md": "# Docs\n\n## Try\n\n| page | x |\n|---|--:|\n| [README](../README.md) | x |\n| [page](page.md) | y |\n| [CHANGELOG](../CHANGELOG.md) | z |\n",
		"docs/page.md":   "# Page\n\n## Part\n\n[code](../main.go) <b>bold</b>\n", "main.go": "package main\n",
		consoleCSS: ":root { --bg: x; --ink: x; --accent: x; --mono: x }\n@media (prefers-color-scheme: dark) { :root { --bg: d } }", mark: "<svg/>",
	}
	maps.Copy(all, changes)
	root := t.TempDir()
	for name, text := range all {
		if err := os.MkdirAll(filepath.Join(root, path.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestBuild_Refuses(t *testing.T) {
	t.Parallel()
	const page = "docs/page.md"
	for says, changes := range map[string]map[string]string{
		"docs/page.md#part, which has no such heading": {page: "# Page\n\n## Other\n"},
		"the link gone.md leads nowhere":               {page: "# Page\n\n## Part\n\n[x](gone.md)\n"},
		"the link ../../etc/passwd leads nowhere":      {page: "# Page\n\n## Part\n\n[x](../../etc/passwd)\n"},
		"is of another host":                           {page: "# Page\n\n## Part\n\n![x](https://img.example/x.png)\n"},
		"does not list docs/new.md":                    {"docs/new.md": "# New\n"},
		"does not begin with a title":                  {page: "## Part\n"},
		"lists docs/page.md twice":                     {"docs/README.md": "# D\n## T\n| [a](page.md) | x |\n| [b](page.md) | x |\n"},
		"does not list CHANGELOG.md":                   {"docs/README.md": "# D\n## T\n| [a](page.md) | x |\n| [b](../README.md) | x |\n"},
	} {
		if _, err := build(config{root: tiny(t, changes), base: "/"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", changes, err)
		}
	}
	for _, c := range []config{{base: "docket/"}, {base: "/x"}, {base: "/", url: "docs.example"}, {base: "/", source: "git.example/"}, {base: "/", url: "https://x/y"}} {
		c.root = tiny(t, nil)
		if _, err := build(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestBuild_Addresses(t *testing.T) {
	t.Parallel()
	made, err := build(config{root: tiny(t, map[string]string{"docs/console/now.png": "png"}), base: "/docs/", url: "https://x.example", source: "https://git.example/blob/main/", revision: "v1.2"})
	if err != nil {
		t.Fatal(err)
	}
	for file, wants := range map[string][]string{
		"docs/page.html":       {`href="https://git.example/blob/main/main.go"`, `<h2 id="part">`, `src="../assets/site.js"`, "Docket v1.2"},
		"index.html":           {`href="docs/page.html#part"`, `href="docs/page.html" >Page</a>`, `>Tiny</a>`, `src="assets/site.js"`},
		"docs/console/now.png": {"png"},
		"404.html":             {`href="/docs/assets/site.css"`, `href="/docs/index.html"`},
		"sitemap.xml":          {"<loc>https://x.example/docs/docs/page.html</loc>"},
		"docs/index.html":      {`<td align="right">`, `aria-label="Table"`},
	} {
		for _, want := range wants {
			if !strings.Contains(string(made[file]), strings.ReplaceAll(want, " >", ">")) {
				t.Errorf("%s has no %s", file, want)
			}
		}
	}
	made, err = build(config{root: tiny(t, nil), base: "/"})
	if err != nil || !strings.Contains(string(made["sitemap.xml"]), "<loc>/docs/page.html</loc>") || strings.Contains(string(made["docs/page.html"]), "main.go") || !strings.Contains(string(made["docs/page.html"]), "<p>code <b>") {
		t.Errorf("%v\n%s", err, made["docs/page.html"])
	}
}

func TestWrite_OwnFolderOnly(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "site")
	for _, f := range []files{{marker: nil, "a/b.html": []byte("x")}, {marker: nil, "c.html": []byte("y")}} {
		if err := f.write(to); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(to, "a")); !os.IsNotExist(err) {
		t.Errorf("the old site is still there: %v", err)
	}
	if err := os.Remove(filepath.Join(to, marker)); err != nil {
		t.Fatal(err)
	}
	if err := (files{marker: nil}).write(to); err == nil {
		t.Error("a folder of others was replaced")
	}
}
