package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed assets/page.html assets/site.css assets/site.js assets/search.js
var assets embed.FS

// The files of the console that the site shares: its colours and its mark.
const (
	consoleCSS = "internal/desk/console/assets/console.css"
	mark       = "internal/desk/console/assets/icon.svg"
)

// site is a site while it is built.
type site struct {
	config
	doors   []door
	known   map[string]entry // pages by their source
	files   files
	anchors map[string]bool // page#id by source
	wanted  []anchor
}

// anchor is a link to a heading.
type anchor struct{ from, page, id string }

// build makes all files of a site.
func build(c config) (files, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	doors, err := readNav(c.root)
	if err != nil {
		return nil, err
	}
	s := &site{config: c, doors: doors, known: map[string]entry{}, files: files{marker: nil}, anchors: map[string]bool{}}
	for _, e := range flat(doors) {
		s.known[e.source] = e
	}
	docs, err := s.documents()
	if err != nil {
		return nil, err
	}
	s.name(docs)
	if err := s.checkAnchors(); err != nil {
		return nil, err
	}
	if err := s.shared(); err != nil {
		return nil, err
	}
	if err := s.pages(docs); err != nil {
		return nil, err
	}
	if s.files["search.json"], err = index(docs); err != nil {
		return nil, err
	}
	s.files["sitemap.xml"] = s.sitemap()
	return s.files, nil
}

func (s *site) documents() ([]document, error) {
	var docs []document
	var all []error
	for _, e := range flat(s.doors) {
		text, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(e.source)))
		if err != nil {
			return nil, fmt.Errorf("read a page: %w", err)
		}
		d, err := render(e, text, s.link)
		all = append(all, err)
		for _, h := range d.headings {
			s.anchors[e.source+"#"+h.id] = true
		}
		s.anchors[e.source+"#"] = true
		docs = append(docs, d)
	}
	return docs, errors.Join(all...)
}

// name gives entries the names of the navigation: as listed with a capital, or the title of a page that is listed by the
// name of its file.
func (s *site) name(docs []document) {
	names := map[string]string{}
	for i, d := range docs {
		name := strings.ToUpper(d.entry.title[:1]) + d.entry.title[1:]
		if strings.ToUpper(name) == name {
			name = d.title
		}
		names[d.source], docs[i].entry.title = name, name
	}
	for _, door := range s.doors {
		for i := range door.entries {
			door.entries[i].title = names[door.entries[i].source]
		}
	}
}

// link is the [linker] of the site.
func (s *site) link(from, destination string, image bool) (string, error) {
	if strings.HasPrefix(destination, "https://") || strings.HasPrefix(destination, "http://") {
		if image {
			return "", fmt.Errorf("the image %s is of another host", destination)
		}
		return destination, nil
	}
	to, id, _ := strings.Cut(destination, "#")
	target := from
	if to != "" {
		target = path.Join(path.Dir(from), to)
	}
	if _, is := s.known[target]; is && !image {
		s.wanted = append(s.wanted, anchor{from, target, id})
		if to == "" {
			return "#" + id, nil
		}
		return strings.TrimSuffix(relative(htmlOf(from), htmlOf(target))+"#"+id, "#"), nil
	}
	file := filepath.Join(s.root, filepath.FromSlash(target))
	info, err := os.Stat(file)
	switch {
	case err != nil || strings.HasPrefix(target, "../"):
		return "", fmt.Errorf("the link %s leads nowhere", destination)
	case !info.IsDir() && (image || strings.HasPrefix(target, "docs/")):
		if s.files[target], err = os.ReadFile(file); err != nil {
			return "", fmt.Errorf("read a file that a page links to: %w", err)
		}
		return relative(htmlOf(from), target), nil
	case s.source == "":
		return "", nil
	}
	return s.source + target, nil
}

// relative returns the address of one file of the site as seen from another.
func relative(from, to string) string {
	up := strings.Count(from, "/")
	return strings.Repeat("../", up) + to
}

func (s *site) checkAnchors() error {
	var all []error
	for _, a := range s.wanted {
		if !s.anchors[a.page+"#"+a.id] {
			all = append(all, fmt.Errorf("%s links to %s#%s, which has no such heading", a.from, a.page, a.id))
		}
	}
	return errors.Join(all...)
}

// shared adds the files that every page has.
func (s *site) shared() error {
	colours, err := os.ReadFile(filepath.Join(s.root, consoleCSS))
	if err != nil {
		return fmt.Errorf("read the colours of the console: %w", err)
	}
	icon, err := os.ReadFile(filepath.Join(s.root, mark))
	if err != nil {
		return fmt.Errorf("read the mark: %w", err)
	}
	s.files["assets/icon.svg"] = icon
	for _, name := range []string{"site.css", "site.js", "search.js"} {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return fmt.Errorf("read the site's own files: %w", err)
		}
		s.files["assets/"+name] = text
	}
	if err := s.pictures(); err != nil {
		return err
	}
	tokens, err := tokensOf(string(colours))
	if err != nil {
		return err
	}
	s.files["assets/site.css"] = append([]byte(tokens), s.files["assets/site.css"]...)
	return nil
}

// pictures adds the pictures of docs/. HTML in a page can name one without a link of Markdown.
func (s *site) pictures() error {
	within := os.DirFS(s.root)
	for _, pattern := range []string{"docs/*.svg", "docs/*.png", "docs/*/*.svg", "docs/*/*.png"} {
		names, err := fs.Glob(within, pattern)
		if err != nil {
			return fmt.Errorf("list the pictures: %w", err)
		}
		for _, name := range names {
			if s.files[name], err = fs.ReadFile(within, name); err != nil {
				return fmt.Errorf("read a picture: %w", err)
			}
		}
	}
	return nil
}

var comment = regexp.MustCompile(`(?s)/\*.*?\*/`)

// tokensOf returns the rules of a style sheet that only set tokens: those of :root, also within a media query.
func tokensOf(css string) (string, error) {
	var out strings.Builder
	depth, begin := 0, 0
	css = comment.ReplaceAllString(css, "")
	for i, r := range css {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth > 0 {
				continue
			}
			if rule := strings.TrimSpace(css[begin : i+1]); onlyRoot(rule) {
				out.WriteString(rule + "\n")
			}
			begin = i + 1
		}
	}
	tokens := out.String()
	for _, wanted := range []string{"--bg:", "--ink:", "--accent:", "--mono:", "prefers-color-scheme: dark"} {
		if !strings.Contains(tokens, wanted) {
			return "", fmt.Errorf("%s has no %s in a rule of :root", consoleCSS, wanted)
		}
	}
	return tokens, nil
}

// onlyRoot reports whether each selector of a rule is :root.
func onlyRoot(rule string) bool {
	head, body, _ := strings.Cut(rule, "{")
	if strings.HasPrefix(head, "@media") {
		for _, inner := range strings.SplitAfter(strings.TrimSuffix(body, "}"), "}") {
			if strings.TrimSpace(inner) != "" && !onlyRoot(strings.TrimSpace(inner)) {
				return false
			}
		}
		return true
	}
	return strings.HasPrefix(head, ":root")
}

// view is what the template of a page gets.
type view struct {
	Title, Name, Revision string
	Up                    string // address of the site's top, as seen from the page
	Doors                 []viewDoor
	Body                  template.HTML
	Contents              []heading
	Before, Next          *viewEntry
	Lost                  bool // the page for addresses that are not there
}

type viewDoor struct {
	Title   string
	Entries []viewEntry
}

type viewEntry struct {
	Title, URL string
	Here       bool
}

// ID and Text are a heading's, for templates.
func (h heading) ID() string   { return h.id }
func (h heading) Text() string { return h.text }

// Sub reports whether a heading is below another in the contents.
func (h heading) Sub() bool { return h.level > 2 }

func (s *site) pages(docs []document) error {
	t, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	for i, d := range docs {
		here := htmlOf(d.source)
		v := view{Title: d.title, Name: here, Revision: s.revision, Up: strings.Repeat("../", strings.Count(here, "/")), Body: template.HTML(d.html), Contents: contents(d.headings)}
		v.Doors = s.nav(v.Up, d.source)
		if i > 0 {
			v.Before = &viewEntry{Title: docs[i-1].entry.title, URL: v.Up + htmlOf(docs[i-1].source)}
		}
		if i+1 < len(docs) {
			v.Next = &viewEntry{Title: docs[i+1].entry.title, URL: v.Up + htmlOf(docs[i+1].source)}
		}
		if err := s.page(t, here, v); err != nil {
			return err
		}
	}
	// A missing address can be at any depth, so this page alone needs the path of the site.
	lost := view{Title: "There is no such page", Up: s.base, Lost: true, Doors: s.nav(s.base, "")}
	return s.page(t, "404.html", lost)
}

func (s *site) page(t *template.Template, name string, v view) error {
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return fmt.Errorf("make the page %s: %w", name, err)
	}
	s.files[name] = b.Bytes()
	return nil
}

func (s *site) nav(up, here string) []viewDoor {
	var all []viewDoor
	for _, d := range s.doors {
		if len(d.entries) == 0 {
			continue
		}
		out := viewDoor{Title: d.title}
		for _, e := range d.entries {
			out.Entries = append(out.Entries, viewEntry{e.title, up + htmlOf(e.source), e.source == here})
		}
		all = append(all, out)
	}
	return all
}

// mostContents is how many headings the contents of a page show before those of the third level are left out.
const mostContents = 40

func contents(all []heading) (out []heading) {
	deepest := 3
	if len(all) > mostContents {
		deepest = 2
	}
	for _, h := range all {
		if h.level == 2 || h.level == deepest {
			out = append(out, h)
		}
	}
	return out
}

// sitemap lists all pages. Without the URL of a host its addresses are paths, which no crawler takes.
func (s *site) sitemap() []byte {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n")
	for _, e := range flat(s.doors) {
		fmt.Fprintf(&b, "  <url><loc>%s%s%s</loc></url>\n", s.url, s.base, htmlOf(e.source))
	}
	b.WriteString("</urlset>\n")
	return []byte(b.String())
}
