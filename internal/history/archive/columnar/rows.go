package columnar

import (
	"context"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Rows passes the line of each row to emit, in the order of writing. line is valid until emit returns. All bytes of the
// file go to all, in their order; nil: nowhere.
//
// The compressed pages of one group of rows are in memory at a time, and one page of each column.
func (f *File) Rows(ctx context.Context, all io.Writer, emit func(line []byte) error) (err error) {
	defer guard(&err)
	return f.rows(ctx, all, emit, nil)
}

func (f *File) rows(ctx context.Context, all io.Writer, emit func(line []byte) error, proof *proof) error {
	if all == nil {
		all = io.Discard
	}
	passed := int64(0)
	pass := func(v *view, to int64) error {
		if to > f.size {
			return &DamageError{"points behind its end"}
		}
		for passed < to {
			part := Part{passed, min(to-passed, 1<<20)}
			if err := v.fetch(part); err != nil {
				return err
			}
			if _, err := all.Write(v.parts[len(v.parts)-1].data); err != nil {
				return err
			}
			v.forget()
			passed = part.end()
		}
		return nil
	}
	for _, g := range f.groups {
		v := f.view(ctx)
		var whole Part
		for i := range g.chunks {
			whole = around(whole, f.data(g, i))
		}
		if err := pass(v, whole.Offset); err != nil {
			return damaged("cannot be read", err)
		}
		if err := v.fetch(whole); err != nil {
			return damaged("cannot be read", err)
		}
		if _, err := all.Write(v.parts[0].data); err != nil {
			return err
		}
		made := int64(0)
		for i := range g.chunks {
			if err := f.checkColumn(v, g, i, &made); err != nil {
				return err
			}
		}
		passed = whole.end()
		if err := proof.begin(ctx, g); err != nil {
			return err
		}
		if err := f.group(v, g, emit, proof); err != nil {
			return err
		}
		if err := proof.end(); err != nil {
			return err
		}
	}
	return damaged("cannot be read", pass(f.view(ctx), f.size))
}

// group passes the lines of a group.
func (f *File) group(v *view, g rowGroup, emit func(line []byte) error, proof *proof) error {
	columns := make([]cursor, len(g.chunks))
	defer func() {
		for i := range columns {
			columns[i].close()
		}
	}()
	for i, c := range g.chunks {
		columns[i].pages = c.PagesFrom(v)
	}
	b := builder{layout: f.layout}
	row := b.row(f.layout.leaves)
	var line []byte
	var err error
	for left := g.rows; left > 0; {
		n := min(int64(valuesAtOnce), left)
		for i := range columns {
			read := columns[i].read
			if err := columns[i].more(); err != nil {
				return damaged("cannot be read", err)
			}
			if columns[i].read > read {
				if err := proof.page(i, columns[i].read-1, g.rows-left); err != nil {
					return err
				}
				if proof != nil {
					columns[i].readAhead()
				}
			}
			n = min(n, columns[i].left)
		}
		for i := range columns {
			if err := columns[i].take(int(n)); err != nil {
				return damaged("cannot be read", err)
			}
		}
		if proof != nil {
			if err := proof.rows(g.rows-left, columns, int(n), emit); err != nil {
				return err
			}
			left -= n
			continue
		}
		for r := range int(n) {
			for i := range columns {
				row[i] = columns[i].values[r]
			}
			if line, err = b.line(line[:0], row); err != nil {
				return err
			}
			if err := emit(line); err != nil {
				return err
			}
		}
		left -= n
	}
	return nil
}

const valuesAtOnce = 512

// cursor reads one column from its first page to its last.
type cursor struct {
	pages  *parquet.FilePages
	ahead  chan readPage // nil: no page is read ahead
	page   parquet.Page
	reader parquet.ValueReader
	left   int64 // values of the page
	read   int   // pages so far
	buffer [valuesAtOnce]parquet.Value
	values []parquet.Value
}

// more reads the next page if the present one is used up.
func (c *cursor) more() error {
	for c.left == 0 {
		if c.page != nil {
			parquet.Release(c.page)
			c.page = nil
		}
		page, err := c.next()
		if err != nil {
			return err
		}
		c.page, c.reader, c.left = page, page.Values(), page.NumValues()
		c.read++
	}
	return nil
}

// readPage is a page that was read, or the error.
type readPage struct {
	page parquet.Page
	err  error
}

// mostAhead limits the memory of a page behind which another one is read ahead.
const mostAhead = 1 << 20

// readAhead reads the next page while the rows of the present one are checked.
func (c *cursor) readAhead() {
	if c.page.Size() > mostAhead {
		return
	}
	read := make(chan readPage, 1)
	c.ahead = read
	go func() {
		var n readPage
		defer func() { read <- n }()
		defer guard(&n.err)
		n.page, n.err = c.pages.ReadPage()
	}()
}

func (c *cursor) next() (parquet.Page, error) {
	if c.ahead == nil {
		return c.pages.ReadPage()
	}
	n := <-c.ahead
	c.ahead = nil
	return n.page, n.err
}

// take reads so many values of the present page. They are valid until more reads another.
func (c *cursor) take(n int) error {
	if err := readAll(c.reader, c.buffer[:n]); err != nil {
		return err
	}
	c.values, c.left = c.buffer[:n], c.left-int64(n)
	return nil
}

func (c *cursor) close() {
	if c.ahead != nil {
		if n := <-c.ahead; n.page != nil {
			parquet.Release(n.page)
		}
	}
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
	if c.pages != nil {
		_ = c.pages.Close() // it was only read; an error of reading came with its page
	}
}
