package columnar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// Find returns the rows with an id, oldest first. It asks the filter of each group of rows. Of a group that may have
// the id it reads the column of ids, and then only the pages that have the row.
func (f *File) Find(ctx context.Context, id string) ([]Row, error) {
	groups, err := f.outline.Groups(ctx, f.from, id)
	if err != nil {
		return nil, err
	}
	var rows []Row
	err = f.FindIn(ctx, groups, id, func(r Row) (bool, error) {
		rows = append(rows, r)
		return true, nil
	})
	return rows, err
}

// FindIn is Find in some groups of rows, which ascend: see [Outline.Groups]. It passes each row to emit until that wants
// no more.
func (f *File) FindIn(ctx context.Context, groups []int, id string, emit func(Row) (more bool, err error)) (err error) {
	defer guard(&err)
	for _, n := range groups {
		if more, err := f.findIn(ctx, f.groups[n], id, emit); err != nil || !more {
			return err
		}
	}
	return nil
}

// MayHave reports whether a filter does not rule the id out. It reads 32 bytes of each group of rows.
func (f *File) MayHave(ctx context.Context, id string) (bool, error) {
	groups, err := f.outline.Groups(ctx, f.from, id)
	return len(groups) > 0, err
}

// section is a view from an offset on.
type section struct {
	of   *view
	from int64
}

func (s *section) ReadAt(p []byte, off int64) (int, error) { return s.of.ReadAt(p, s.from+off) }

func (f *File) findIn(ctx context.Context, g rowGroup, id string, emit func(Row) (bool, error)) (more bool, err error) {
	v := f.view(ctx)
	if err := v.fetch(f.data(g, f.layout.id)); err != nil {
		return false, damaged("cannot be read", err)
	}
	if err := f.checkColumn(v, g, f.layout.id, new(int64)); err != nil {
		return false, err
	}
	var at []int64
	err = f.column(v, g, f.layout.id, func(row int64, value parquet.Value) {
		if string(value.ByteArray()) == id {
			at = append(at, row)
		}
	})
	if err != nil {
		return false, damaged("cannot be read", err)
	}
	for some := range slices.Chunk(at, mostAtOnce) {
		v.forget()
		more = true
		err := f.inBatches(v, g, some, func(rows []Row) (_ bool, err error) {
			for i := 0; i < len(rows) && more && err == nil; i++ {
				more, err = emit(rows[i])
			}
			return more, err
		})
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// inBatches passes rows of a group by their places in it, which ascend, until each wants no more. It halves a batch that
// has too many bytes.
func (f *File) inBatches(v *view, g rowGroup, rows []int64, each func([]Row) (more bool, err error)) error {
	_, err := f.batch(v, g, rows, false, each)
	return err
}

// batch is inBatches; down: the later half comes first.
func (f *File) batch(v *view, g rowGroup, rows []int64, down bool, each func([]Row) (more bool, err error)) (more bool, err error) {
	found, err := f.at(v, g, rows)
	if err == nil {
		return each(found)
	}
	if !errors.Is(err, errLarge) {
		return false, err
	}
	v.forget()
	halves := [2][]int64{rows[:len(rows)/2], rows[len(rows)/2:]}
	if down {
		halves[0], halves[1] = halves[1], halves[0]
	}
	for _, half := range halves {
		if more, err := f.batch(v, g, half, down, each); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// errLarge says that several rows together have too many bytes.
var errLarge = errors.New("the rows have too many bytes")

// column passes all values of a column of a group.
func (f *File) column(v *view, g rowGroup, column int, each func(row int64, value parquet.Value)) error {
	c := cursor{pages: g.chunks[column].PagesFrom(v)}
	defer c.close()
	for row := int64(0); row < g.rows; {
		if err := c.more(); err != nil {
			return err
		}
		if err := c.take(int(min(c.left, valuesAtOnce))); err != nil {
			return err
		}
		for _, value := range c.values {
			each(row, value)
			row++
		}
	}
	return nil
}

// at returns rows of a group by their places in it, which ascend. It reads the pages that have them.
func (f *File) at(v *view, g rowGroup, rows []int64) ([]Row, error) {
	if err := f.fetchPages(v, g, rows, nil); err != nil {
		return nil, damaged("cannot be read", err)
	}
	values := make([][]parquet.Value, len(rows))
	for i := range values {
		values[i] = make([]parquet.Value, f.layout.leaves)
	}
	size := int64(0)
	for i := range g.chunks {
		err := f.pick(v, g, i, rows, func(n int, value parquet.Value) error {
			if !value.IsNull() && value.Kind() == parquet.ByteArray {
				size += int64(len(value.ByteArray()))
			}
			if size > mostBatch && len(rows) > 1 {
				return errLarge
			}
			if most := 2*f.limits.line + mostPage; len(rows) == 1 && size > most {
				return &LimitError{fmt.Sprintf("group %d, row %d", g.meta, rows[n]), "a row", size, most}
			}
			values[n][i] = value.Clone()
			return nil
		})
		if errors.Is(err, errLarge) {
			return nil, errLarge
		}
		if err != nil {
			return nil, damaged("cannot be read", err)
		}
	}
	b := builder{layout: f.layout}
	all := make([]Row, len(rows))
	for i := range rows {
		line, err := b.line(nil, values[i])
		if err != nil {
			return nil, err
		}
		if n := int64(len(line)); n > f.limits.line {
			return nil, &LimitError{fmt.Sprintf("group %d, row %d", g.meta, rows[i]), "a row", n, f.limits.line}
		}
		all[i] = f.describeRow(values[i], line)
	}
	return all, nil
}

// places reads the places of a group's pages, once.
func (f *File) places(v *view, g rowGroup) error {
	if g.known.Load() {
		return nil
	}
	if err := v.fetch(f.pages(g)); err != nil {
		return err
	}
	for i, c := range g.chunks {
		meta := &f.file.Metadata().RowGroups[g.meta].Columns[i]
		if err := f.checkIndex(v, g, i, Part{meta.OffsetIndexOffset, int64(meta.OffsetIndexLength)}); err != nil {
			return err
		}
		index, err := c.OffsetIndexFrom(v)
		if err != nil {
			return err
		}
		if err := f.checkPlaces(g, i, index); err != nil {
			return err
		}
	}
	g.known.Store(true)
	return nil
}

// fetchPages fetches the pages that have rows, of some columns; nil: all.
func (f *File) fetchPages(v *view, g rowGroup, rows []int64, columns []int) error {
	if err := f.places(v, g); err != nil {
		return err
	}
	var parts []Part
	var of []int // their columns
	for i, c := range g.chunks {
		if columns != nil && !slices.Contains(columns, i) {
			continue
		}
		index, err := c.OffsetIndexFrom(v)
		if err != nil {
			return err
		}
		if whole := f.data(g, i); index.NumPages() > 0 && index.Offset(0) > whole.Offset {
			parts, of = append(parts, Part{whole.Offset, index.Offset(0) - whole.Offset}), append(of, i) // of the dictionary
		}
		page := 0
		for _, row := range rows {
			for page+1 < index.NumPages() && index.FirstRowIndex(page+1) <= row {
				page++
			}
			p := Part{index.Offset(page), index.CompressedPageSize(page)}
			if n := len(parts); n == 0 || parts[n-1] != p {
				parts, of = append(parts, p), append(of, i)
			}
		}
	}
	if err := v.fetch(parts...); err != nil {
		return err
	}
	for i, p := range parts {
		if _, err := f.checkPage(v, g, of[i], p, true); err != nil {
			return err
		}
	}
	return nil
}

// pick passes the values of a column in some rows, which ascend. A value is valid until each returns.
func (f *File) pick(v *view, g rowGroup, column int, rows []int64, each func(n int, value parquet.Value) error) error {
	pages := g.chunks[column].PagesFrom(v)
	defer func() { _ = pages.Close() }()
	index, err := g.chunks[column].OffsetIndexFrom(v)
	if err != nil {
		return err
	}
	var some [valuesAtOnce]parquet.Value
	for n := 0; n < len(rows); {
		if err := pages.SeekToRow(rows[n]); err != nil {
			return err
		}
		page, err := pages.ReadPage()
		if err != nil {
			return err
		}
		next := nextPage(index, rows[n])
		reader, at := page.Values(), rows[n]
		for n < len(rows) && (next < 0 || rows[n] < next) {
			k := together(rows[n:], next, len(some))
			err := skip(reader, some[:], rows[n]-at)
			if err == nil {
				err = readAll(reader, some[:k])
			}
			for i := 0; i < k && err == nil; i++ {
				err = each(n+i, some[i])
			}
			if err != nil {
				parquet.Release(page)
				return err
			}
			at = rows[n] + int64(k)
			n += k
		}
		parquet.Release(page)
	}
	return nil
}

// together is how many of the first rows follow each other without a gap: before the row next, and at most so many.
func together(rows []int64, next int64, most int) int {
	k := 1
	for k < len(rows) && k < most && rows[k] == rows[0]+int64(k) && (next < 0 || rows[k] < next) {
		k++
	}
	return k
}

// readAll reads as many values as into has room for.
func readAll(reader parquet.ValueReader, into []parquet.Value) error {
	for got := 0; got < len(into); {
		k, err := reader.ReadValues(into[got:])
		got += k
		switch {
		case err != nil && (!errors.Is(err, io.EOF) || got < len(into)):
			return err
		case k == 0:
			return errValues
		}
	}
	return nil
}

func errorOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// nextPage is the first row of the page behind that of a row; -1: there is none.
func nextPage(index *parquet.FileOffsetIndex, row int64) int64 {
	for page := range index.NumPages() {
		if first := index.FirstRowIndex(page); first > row {
			return first
		}
	}
	return -1
}

func skip(reader parquet.ValueReader, into []parquet.Value, n int64) error {
	for n > 0 {
		k, err := reader.ReadValues(into[:min(n, int64(len(into)))])
		if n -= int64(k); n > 0 && (k == 0 || err != nil) {
			return errorOr(err, errValues)
		}
	}
	return nil
}
