package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// heading is a heading of a page.
type heading struct {
	level  int
	id     string
	text   string
	detail string // the text below it, up to the next heading
	keys   string // the first cells of its tables, each with the subject of its row
}

// document is a page that was read.
type document struct {
	entry
	html     string
	title    string // of the first heading
	headings []heading
}

// linker says where a link of a page leads. An empty target makes the link plain text.
type linker func(from, destination string, image bool) (target string, err error)

// markdown reads pages. Raw HTML of the pages stays: they are those of the repository.
// Cells are aligned by an attribute, as the policy of the pages allows no style in a line.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.Linkify, extension.TaskList),
	goldmark.WithRendererOptions(html.WithUnsafe()))

// render reads a page and returns it with its links resolved.
func render(e entry, source []byte, link linker) (document, error) {
	d := document{entry: e}
	root := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext()))
	d.headings = headingsOf(root, source)
	if len(d.headings) == 0 || d.headings[0].level != 1 {
		return d, fmt.Errorf("%s does not begin with a title", e.source)
	}
	d.title = d.headings[0].text
	if err := relink(root, func(destination string, image bool) (string, error) { return link(e.source, destination, image) }); err != nil {
		return d, fmt.Errorf("%s: %w", e.source, err)
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, root); err != nil {
		return d, fmt.Errorf("render %s: %w", e.source, err)
	}
	// A wide table scrolls by itself, also by keyboard.
	d.html = strings.NewReplacer("<table>", `<div class="wide" tabindex="0" role="region" aria-label="Table"><table>`, "</table>", "</table></div>").Replace(out.String())
	return d, nil
}

// headingsOf gives each heading the id that GitHub gives it, and returns them with the text below each.
func headingsOf(root ast.Node, source []byte) []heading {
	var all []heading
	taken := map[string]int{}
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, is := n.(*ast.Heading); is {
			title := textOf(h, source)
			id := unique(slug(title), taken)
			h.SetAttributeString("id", []byte(id))
			all = append(all, heading{level: h.Level, id: id, text: title})
			continue
		}
		if len(all) > 0 {
			last := &all[len(all)-1]
			last.detail = strings.TrimSpace(last.detail + " " + detailOf(n, source))
			walk(n, func(n ast.Node) {
				if row, is := n.(*east.TableRow); is {
					last.keys += " " + textOf(row.FirstChild(), source)
				}
			})
		}
	}
	return all
}

// detailOf is textOf without the heads of tables, which are the same for many sections.
func detailOf(n ast.Node, source []byte) string {
	if n.Kind() != east.KindTable {
		return textOf(n, source)
	}
	var rows []string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		if row.Kind() != east.KindTableHeader {
			rows = append(rows, textOf(row, source))
		}
	}
	return strings.Join(rows, " ")
}

// slug returns the id that GitHub makes from the text of a heading.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unique adds a number to an id that was given before, as GitHub does.
func unique(id string, taken map[string]int) string {
	n, again := taken[id]
	taken[id] = n + 1
	if !again {
		return id
	}
	return unique(fmt.Sprintf("%s-%d", id, n), taken)
}

// textOf returns the words of a node without markup, on one line.
func textOf(node ast.Node, source []byte) string {
	var b strings.Builder
	walk(node, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(source))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			b.WriteByte(' ')
			b.Write(n.Lines().Value(source))
		default:
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

func walk(node ast.Node, visit func(ast.Node)) {
	visit(node)
	for n := node.FirstChild(); n != nil; n = n.NextSibling() {
		walk(n, visit)
	}
}

// relink changes the destinations of links and images. A link without a target is replaced by its content.
func relink(root ast.Node, link func(destination string, image bool) (string, error)) error {
	var nodes []ast.Node
	walk(root, func(n ast.Node) { nodes = append(nodes, n) })
	var all []error
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.Image:
			target, err := link(string(n.Destination), true)
			n.Destination, all = []byte(target), append(all, err)
		case *ast.Link:
			target, err := link(string(n.Destination), false)
			all = append(all, err)
			if n.Destination = []byte(target); target == "" {
				unwrap(n)
			}
		}
	}
	return errors.Join(all...)
}

// unwrap puts the content of a node in its place.
func unwrap(n ast.Node) {
	parent := n.Parent()
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		parent.InsertBefore(parent, n, child)
	}
	parent.RemoveChild(parent, n)
}
