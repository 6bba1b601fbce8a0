package columnar

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/bloom"

	"docket/internal/record/decision"
	"docket/internal/record/subject"
)

// Prove is [File.Rows], and also checks all that answers rely on besides the lines. Each id and each subject is found
// through the filters. The bounds of pages and groups have the values that they stand for, and the places of pages are
// right. Each line is made of the columns of its row, in a form that no other row has. Each derived column is as a writer makes
// it from the line. A row that has another form has all columns compared. A deviation is a [*DamageError].
//
// Where a page is small, the next one of its column is in memory, too.
func (f *File) Prove(ctx context.Context, all io.Writer, emit func(line []byte) error) (err error) {
	defer guard(&err)
	return f.prove(ctx, all, emit, min(runtime.GOMAXPROCS(0), mostCheckers))
}

// prove proves with so many goroutines.
func (f *File) prove(ctx context.Context, all io.Writer, emit func(line []byte) error, goroutines int) error {
	by, err := subject.Parse(f.subject)
	if err != nil {
		return &DamageError{"does not say how its subjects were found"}
	}
	p := &proof{f: f}
	for range goroutines {
		again := &Writer{layout: f.layout, subject: by, cells: make([][]byte, len(f.layout.columns)), sets: map[[repeatedCount]bool]string{}, revisionsOf: revisions{}, builder: builder{layout: f.layout}}
		c := &checker{proof: p, again: again, builder: builder{layout: f.layout}}
		c.builder.notes = &c.seen
		p.checkers = append(p.checkers, c)
	}
	return f.rows(ctx, all, emit, p)
}

// proof checks the rows of a file beside their lines. A nil proof checks nothing.
type proof struct {
	f        *File
	group    rowGroup
	filters  []*provedFilter
	columns  []provedColumn
	checkers []*checker
}

// provedFilter is a filter in memory.
type provedFilter struct {
	column int
	blocks []byte
}

// provedColumn is a column whose bounds answers rely on. Only places are proved of the others.
type provedColumn struct {
	column int
	typ    parquet.Type
	places *parquet.FileOffsetIndex
	bounds *parquet.FileColumnIndex // nil: nobody asks for them
	least  parquet.Value            // of the group; NULL: there is none
	most   parquet.Value
	page   int
	ends   int64 // row behind the page
}

// asked are the columns that a question has conditions on.
func (f *File) asked() map[int]bool {
	l := f.layout
	all := map[int]bool{l.ts: true, l.added[Verdict]: true, l.added[Subject]: true}
	for i, c := range l.columns {
		if c.kind == asText && (c.Name == "path" || c.Name == "service") {
			all[i] = true
		}
	}
	return all
}

// begin reads filters, bounds and places of a group.
func (p *proof) begin(ctx context.Context, g rowGroup) error {
	if p == nil {
		return nil
	}
	p.group, p.filters, p.columns = g, nil, nil
	v := p.f.view(ctx)
	for _, one := range []struct {
		column int
		of     *filter
	}{{p.f.layout.id, p.f.outline.filters[g.meta]}, {p.f.layout.added[Subject], g.subjects}} {
		if one.of.blocks.Length == 0 {
			return &DamageError{"has no filter, " + p.f.place(g, one.column, 0)}
		}
		if err := v.fetch(one.of.blocks); err != nil {
			return damaged("cannot be read", err)
		}
		blocks, _ := v.bytes(one.of.blocks)
		p.filters = append(p.filters, &provedFilter{one.column, blocks})
	}
	if err := p.f.places(v, g); err != nil {
		return damaged("cannot be read", err)
	}
	if err := v.fetch(p.f.bounds(g)); err != nil {
		return damaged("cannot be read", err)
	}
	asked := p.f.asked()
	for i, c := range g.chunks {
		one := provedColumn{column: i, typ: p.f.layout.schema.Fields()[i].Type(), page: -1}
		var err error
		if one.places, err = c.OffsetIndexFrom(v); err != nil {
			return damaged("cannot be read", err)
		}
		if asked[i] {
			if one.bounds, err = p.f.boundsOf(v, g, i); err != nil {
				return damaged("cannot be read", err)
			}
			if one.bounds.NumPages() != one.places.NumPages() {
				return &DamageError{"has bounds of other pages, " + p.f.place(g, i, 0)}
			}
		}
		p.columns = append(p.columns, one)
	}
	for _, c := range p.checkers {
		c.columns = slices.Clone(p.columns)
	}
	return nil
}

// row checks a row of the group with its line.
func (c *checker) row(n int64, row []parquet.Value, line []byte) error {
	wrong := func(column int, what string) error {
		return &DamageError{fmt.Sprintf("has %s, %s, row %d", what, c.f.place(c.group, column, 0), n)}
	}
	for _, one := range c.filters {
		v := row[one.column]
		if v.IsNull() {
			continue
		}
		if may, err := bloom.CheckSplitBlock(bytes.NewReader(one.blocks), int64(len(one.blocks)), bloom.XXH64{}.Sum64(v.ByteArray())); err != nil || !may {
			return wrong(one.column, "a filter that rules out a value that is there")
		}
	}
	for i := range c.columns {
		if one := &c.columns[i]; !one.has(n, c.group.rows, row[one.column]) {
			return wrong(one.column, "bounds that rule out a value that is there")
		}
	}
	if c.seen.twice {
		return wrong(c.f.layout.raw, "a member that was left out and is there")
	}
	made, columns, err := c.made(row, line)
	if err != nil {
		return wrong(0, "a broken line")
	}
	for _, i := range columns {
		if made[i].IsNull() != row[i].IsNull() || !row[i].IsNull() && !parquet.Equal(made[i], row[i]) {
			return wrong(i, "a column that its line does not have")
		}
	}
	return nil
}

// made returns the values that a writer makes of a line, and the columns that need to be compared with them. A line that was
// built of the values of a row says all that the table has, if a writer could have made these values: see proper. Then it is
// enough to derive the other columns from what the builder saw.
func (c *checker) made(row []parquet.Value, line []byte) (made []parquet.Value, columns []int, err error) {
	l := c.f.layout
	c.again.arena = c.again.arena[:0]
	if !row[l.added[Line]].IsNull() {
		made, err = c.again.row(line)
		return made, l.all, err
	}
	if !c.proper(row) {
		made, err = c.again.values(line)
		return made, l.all, err
	}
	made = c.again.builder.row(l.leaves)
	copy(made, row)
	for _, i := range l.derived {
		made[i] = parquet.NullValue()
	}
	if m := l.members[bundlesMember]; c.seen.has[bundlesMember] && m >= 0 {
		c.seen.bundles = row[m].ByteArray()
	}
	c.again.derive(made, &c.seen.shortened, line[c.seen.from:c.seen.to])
	return made, l.derived, nil
}

// proper reports whether the values of a row have the form that a writer gives them, so that no other row has the same line: times
// that it can read, and JSON that is one object. Members that were left out of the payload are in columns. The payload is not
// NULL.
func (c *checker) proper(row []parquet.Value) bool {
	l := c.f.layout
	if !c.seen.whole {
		return false
	}
	for m, left := range c.seen.has {
		if left && (l.members[m] < 0 || row[l.members[m]].IsNull()) {
			return false
		}
	}
	if n := row[l.added[Nanos]]; !n.IsNull() && (!c.seen.has[timestampMember] || n.Int32() < 1 || n.Int32() > 999) {
		return false
	}
	for i := range l.columns {
		switch v := row[i]; {
		case v.IsNull():
		case l.columns[i].kind == asTime && (v.Int64() < firstReadable || v.Int64() >= endReadable):
			return false
		case l.columns[i].kind == asJSON && !isObject(v.ByteArray(), i == l.raw):
			return false
		}
	}
	return true
}

// Times of the years 1000 to 9999, in microseconds.
var (
	firstReadable = time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	endReadable   = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)

// isObject reports whether a value of JSON is one object and nothing else. Of a payload the builder has seen its members.
func isObject(value []byte, seen bool) bool {
	if len(value) == 0 || value[0] != '{' || seen {
		return len(value) > 0 && value[0] == '{'
	}
	in := decision.Into(value, 0)
	for in.Next() {
	}
	return !in.Torn() && in.Behind() == len(value)
}

// has reports whether a page's bounds have a value of it, and keeps the bounds of the group.
func (c *provedColumn) has(row, rows int64, v parquet.Value) bool {
	if c.bounds == nil {
		return true
	}
	for row >= c.ends || c.page < 0 {
		c.page++
		if c.ends = rows; c.page+1 < c.places.NumPages() {
			c.ends = c.places.FirstRowIndex(c.page + 1)
		}
	}
	if v.IsNull() {
		return true
	}
	if c.least.IsNull() || c.typ.Compare(v, c.least) < 0 {
		c.least = v.Clone()
	}
	if c.most.IsNull() || c.typ.Compare(v, c.most) > 0 {
		c.most = v.Clone()
	}
	if c.bounds.NullPage(c.page) {
		return false
	}
	least, greatest := c.bounds.MinValue(c.page), c.bounds.MaxValue(c.page)
	if unbounded(least, greatest) {
		return true
	}
	return c.typ.Compare(least, v) <= 0 && c.typ.Compare(v, greatest) <= 0
}

// page checks that a page begins at a row as its place says. The pages of a column come in order.
func (p *proof) page(column, page int, row int64) error {
	if p == nil {
		return nil
	}
	if places := p.columns[column].places; page >= places.NumPages() || places.FirstRowIndex(page) != row {
		return &DamageError{fmt.Sprintf("has wrong places of pages, %s, row %d", p.f.place(p.group, column, 0), row)}
	}
	return nil
}

// end checks the bounds of the group.
func (p *proof) end() error {
	if p == nil {
		return nil
	}
	for _, c := range p.checkers {
		for i := range c.columns {
			if one := &c.columns[i]; !one.inside(p.group.chunks[one.column]) {
				return &DamageError{"has bounds that rule out a value that is there, " + p.f.place(p.group, one.column, 0)}
			}
		}
	}
	return nil
}

// inside reports whether the bounds of a group have the values that were seen.
func (c *provedColumn) inside(chunk *parquet.FileColumnChunk) bool {
	if c.bounds == nil || c.least.IsNull() {
		return true
	}
	least, greatest, ok := chunk.Bounds()
	return !ok || least.IsNull() || greatest.IsNull() || c.typ.Compare(least, c.least) <= 0 && c.typ.Compare(c.most, greatest) <= 0
}
