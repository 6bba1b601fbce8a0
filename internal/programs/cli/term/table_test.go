package term

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTable_FitsWidth: whatever the widths, no line is wider than the terminal once everything that may go has gone; and what may
// not go is whole.
func TestTable_FitsWidth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		columns := []Column{{Title: "id"}, {Title: "s"}}
		for range rapid.IntRange(0, 6).Draw(t, "columns") {
			columns = append(columns, Column{Title: rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "title"), Rank: rapid.IntRange(1, 9).Draw(t, "rank"), Least: rapid.SampledFrom([]int{0, 4, 12}).Draw(t, "least")})
		}
		var rows [][]Cell
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			row := Cells("123456789012", "PENDING")
			for range columns[2:] {
				full := rapid.StringMatching(`[a-zé生]{0,40}`).Draw(t, "text")
				row = append(row, Cell{Full: full, Brief: rapid.SampledFrom([]string{"", "b"}).Draw(t, "brief")})
			}
			rows = append(rows, row)
		}
		width := rapid.IntRange(24, 160).Draw(t, "width")
		var out bytes.Buffer
		newGrid(columns, rows, width).render(&out, "", true)
		for line := range strings.SplitSeq(out.String(), "\n") {
			wide := 0
			for _, r := range line {
				wide++
				if r == '生' {
					wide++
				}
			}
			if wide > width {
				t.Fatalf("%d of %d columns: %s", wide, width, line)
			}
		}
		if strings.Count(out.String(), "123456789012") != len(rows) {
			t.Fatalf("an id was cut:\n%s", out.String())
		}
	})
}
