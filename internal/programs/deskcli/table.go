package deskcli

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// column is a column of a table.
type column struct {
	title string
	rank  int // the higher, the sooner it gives way where it is narrow; 0: never
	least int // how narrow it may be cut; 0: it is never cut
	right bool
	paint func(string) string // after everything else; it adds no width
}

// cell is what stands in a column; brief is used where it is narrow and the column is not to be cut. It may be empty.
type cell struct{ full, brief string }

func cells(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, t := range texts {
		row[i] = cell{full: t}
	}
	return row
}

const gap = 2

// grid fits a table into a width.
type grid struct {
	columns []column
	rows    [][]cell
	brief   []bool
	cut     []int // 0: not cut
	dropped []bool
}

func newGrid(columns []column, rows [][]cell, width int) *grid {
	n := len(columns)
	g := &grid{columns: columns, rows: rows, brief: make([]bool, n), cut: make([]int, n), dropped: make([]bool, n)}
	if width > 0 {
		g.fit(width)
	}
	return g
}

func (g *grid) text(c cell, i int) string {
	if g.brief[i] && c.brief != "" {
		return c.brief
	}
	return c.full
}

// natural is how wide a column is when nothing of it is cut.
func (g *grid) natural(i int) int {
	n := utf8.RuneCountInString(g.columns[i].title)
	for _, row := range g.rows {
		n = max(n, text.StringWidth(g.text(row[i], i)))
	}
	return n
}

func (g *grid) wide() int {
	total := -gap
	for i := range g.columns {
		switch {
		case g.dropped[i]:
			continue
		case g.cut[i] > 0:
			total += max(g.cut[i], utf8.RuneCountInString(g.columns[i].title)) + gap
		default:
			total += g.natural(i) + gap
		}
	}
	return total
}

// fit says everything in brief first, then cuts columns, then drops them, the least important first each time; what room
// that leaves is given back to the most important.
func (g *grid) fit(width int) {
	order := g.order()
	for _, i := range order {
		g.brief[i] = g.wide() > width
	}
	for _, i := range order {
		if n, over := g.natural(i), g.wide()-width; over > 0 && g.columns[i].least > 0 && n > g.columns[i].least {
			g.cut[i] = max(n-over, g.columns[i].least)
		}
	}
	for _, i := range order {
		g.dropped[i] = g.columns[i].rank > 0 && g.wide() > width
	}
	slices.Reverse(order)
	for _, i := range order {
		if spare := width - g.wide(); g.cut[i] > 0 && spare > 0 {
			g.cut[i] += spare
			if g.cut[i] >= g.natural(i) {
				g.cut[i] = 0
			}
		}
	}
	for _, i := range order {
		if g.brief[i] {
			g.brief[i] = false
			g.brief[i] = g.wide() > width
		}
	}
}

// order lists columns, those first that give way first.
func (g *grid) order() []int {
	var order []int
	for rank := 20; rank >= 0; rank-- {
		for i := len(g.columns) - 1; i >= 0; i-- {
			if g.columns[i].rank == rank {
				order = append(order, i)
			}
		}
	}
	return order
}

func (g *grid) shown(c cell, i int) string {
	shown := g.text(c, i)
	if g.cut[i] > 0 {
		shown = text.Snip(shown, g.cut[i], "…")
	}
	if paint := g.columns[i].paint; paint != nil {
		shown = paint(shown)
	}
	return shown
}

// render writes the table without borders, every line behind the indent.
func (g *grid) render(w io.Writer, indent string, headed bool) {
	t := table.NewWriter()
	t.SetStyle(table.Style{
		Box:     table.BoxStyle{PaddingRight: strings.Repeat(" ", gap)},
		Format:  table.FormatOptionsDefault,
		Options: table.OptionsNoBordersAndSeparators,
	})
	t.SuppressTrailingSpaces()
	var titles table.Row
	var configs []table.ColumnConfig
	for i, c := range g.columns {
		if g.dropped[i] {
			continue
		}
		titles = append(titles, c.title)
		if c.right {
			configs = append(configs, table.ColumnConfig{Number: len(titles), Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	if headed {
		t.AppendHeader(titles)
	}
	t.SetColumnConfigs(configs)
	for _, row := range g.rows {
		var line table.Row
		for i, c := range row {
			if !g.dropped[i] {
				line = append(line, g.shown(c, i))
			}
		}
		t.AppendRow(line)
	}
	for line := range strings.SplitSeq(t.Render(), "\n") {
		say(w, "%s\n", strings.TrimRight(indent+line, " "))
	}
}

// table writes rows under their titles, as wide as the terminal is.
func (s *session) table(columns []column, rows [][]cell, indent string) {
	s.tableWith(columns, rows, indent, true)
}

// tableWith is table, headed or not: a later part of a long list is not.
func (s *session) tableWith(columns []column, rows [][]cell, indent string, headed bool) {
	width := s.width()
	if s.wide {
		width = 0
	}
	if width > 0 {
		width -= len(indent)
	}
	newGrid(columns, rows, width).render(s.env.Stdout, indent, headed)
}
