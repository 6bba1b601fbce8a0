package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Column is a column of a table.
type Column struct {
	Title string
	Rank  int // the higher, the sooner it gives way where it is narrow; 0: never
	Least int // how narrow it may be cut; 0: it is never cut
	Right bool
	Paint func(string) Safe // after everything else; it adds no width
}

// Cell is a text in a column. brief replaces it where the column is narrow; empty: it has no shorter form. Both are escaped when they are
// printed.
type Cell struct{ Full, Brief string }

// Cells is a row of texts that have no shorter form.
func Cells(texts ...string) []Cell {
	row := make([]Cell, len(texts))
	for i, t := range texts {
		row[i] = Cell{Full: t}
	}
	return row
}

// Gap is the space between two columns.
const Gap = 2

// grid fits a table into a width.
type grid struct {
	columns []Column
	rows    [][]Cell
	brief   []bool
	cut     []int // 0: not cut
	dropped []bool
}

func newGrid(columns []Column, rows [][]Cell, width int) *grid {
	n := len(columns)
	safe := make([][]Cell, len(rows))
	for i, row := range rows {
		safe[i] = make([]Cell, len(row))
		for j, c := range row {
			safe[i][j] = Cell{Full: Line(c.Full), Brief: Line(c.Brief)}
		}
	}
	g := &grid{columns: columns, rows: safe, brief: make([]bool, n), cut: make([]int, n), dropped: make([]bool, n)}
	if width > 0 {
		g.fit(width)
	}
	return g
}

func (g *grid) text(c Cell, i int) string {
	if g.brief[i] && c.Brief != "" {
		return c.Brief
	}
	return c.Full
}

// natural is how wide a column is when nothing of it is cut.
func (g *grid) natural(i int) int {
	n := utf8.RuneCountInString(g.columns[i].Title)
	for _, row := range g.rows {
		n = max(n, text.StringWidth(g.text(row[i], i)))
	}
	return n
}

func (g *grid) wide() int {
	total := -Gap
	for i := range g.columns {
		switch {
		case g.dropped[i]:
			continue
		case g.cut[i] > 0:
			total += max(g.cut[i], utf8.RuneCountInString(g.columns[i].Title)) + Gap
		default:
			total += g.natural(i) + Gap
		}
	}
	return total
}

// fit first uses brief texts, then cuts columns, then drops them, the least important first each time. It gives spare room back to
// the most important columns.
func (g *grid) fit(width int) {
	order := g.order()
	for _, i := range order {
		g.brief[i] = g.wide() > width
	}
	for _, i := range order {
		if n, over := g.natural(i), g.wide()-width; over > 0 && g.columns[i].Least > 0 && n > g.columns[i].Least {
			g.cut[i] = max(n-over, g.columns[i].Least)
		}
	}
	for _, i := range order {
		g.dropped[i] = g.columns[i].Rank > 0 && g.wide() > width
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
			if g.columns[i].Rank == rank {
				order = append(order, i)
			}
		}
	}
	return order
}

func (g *grid) shown(c Cell, i int) string {
	shown := g.text(c, i)
	if g.cut[i] > 0 {
		shown = text.Snip(shown, g.cut[i], "…")
	}
	if paint := g.columns[i].Paint; paint != nil {
		shown = string(paint(shown))
	}
	return shown
}

// render writes the table without borders, every line behind the indent.
func (g *grid) render(w io.Writer, indent string, headed bool) {
	t := table.NewWriter()
	t.SetStyle(table.Style{
		Box:     table.BoxStyle{PaddingRight: strings.Repeat(" ", Gap)},
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
		titles = append(titles, c.Title)
		if c.Right {
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
		_, _ = fmt.Fprintln(w, strings.TrimRight(indent+line, " "))
	}
}

// Table writes rows under their titles, as wide as the terminal is.
func (s *Screen) Table(columns []Column, rows [][]Cell, indent string) {
	s.TableWith(columns, rows, indent, true)
}

// TableWith is table, headed or not: a later part of a long list is not.
func (s *Screen) TableWith(columns []Column, rows [][]Cell, indent string, headed bool) {
	width := s.Width()
	if s.Wide {
		width = 0
	}
	if width > 0 {
		width -= len(indent)
	}
	newGrid(columns, rows, width).render(s.Out, indent, headed)
}
