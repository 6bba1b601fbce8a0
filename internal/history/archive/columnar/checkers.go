package columnar

import (
	"sync"

	"github.com/parquet-go/parquet-go"
)

const (
	mostCheckers = 4
	shareRows    = 32      // fewer are not worth a goroutine
	shareBytes   = 1 << 20 // of values whose lines are in memory at once, besides one row
)

// checker makes the lines of some rows and checks both. One goroutine uses it at a time.
type checker struct {
	*proof
	again   *Writer // makes the values of a line again
	builder builder
	seen    notes          // of the present line
	columns []provedColumn // with the values that it has seen

	lines []byte
	ends  []int // of each line
	err   error // of the row behind the last line
}

// rows makes the lines of n rows that the columns have, checks them, and passes the lines in order. The first row has
// that place in the group. Several goroutines do it, each a share of the rows, and end before it returns.
func (p *proof) rows(first int64, columns []cursor, n int, emit func(line []byte) error) error {
	for from := 0; from < n; {
		to := atOnce(columns, from, n)
		share := max((to-from+len(p.checkers)-1)/len(p.checkers), shareRows)
		var others sync.WaitGroup
		for i, c := range p.checkers {
			c.lines, c.ends, c.err = c.lines[:0], c.ends[:0], nil
			begin, end := min(from+i*share, to), min(from+(i+1)*share, to)
			switch {
			case begin == end:
			case end == to:
				c.check(first, columns, begin, end)
			default:
				others.Go(func() { c.check(first, columns, begin, end) })
			}
		}
		others.Wait()
		for _, c := range p.checkers {
			if err := c.pass(emit); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// atOnce returns the row behind those that are made at once, so that memory is bounded for rows of any size.
func atOnce(columns []cursor, from, n int) int {
	bytes := 0
	for r := from; r < n; r++ {
		for i := range columns {
			if v := &columns[i].values[r]; v.Kind() == parquet.ByteArray {
				bytes += len(v.ByteArray())
			}
		}
		if bytes > shareBytes {
			return max(r, from+1)
		}
	}
	return n
}

// check makes lines and checks them, until one is wrong.
func (c *checker) check(first int64, columns []cursor, from, to int) {
	defer guard(&c.err)
	row := c.builder.row(len(columns))
	for r := from; r < to; r++ {
		for i := range columns {
			row[i] = columns[i].values[r]
		}
		at := len(c.lines)
		c.seen = notes{}
		lines, err := c.builder.line(c.lines, row)
		c.seen.from, c.seen.to = c.seen.from-at, c.seen.to-at
		if err == nil {
			err = c.row(first+int64(r), row, lines[at:len(lines):len(lines)])
		}
		if err != nil {
			c.err = err
			return
		}
		c.lines, c.ends = lines, append(c.ends, len(lines))
	}
}

// pass passes the lines, and then the error.
func (c *checker) pass(emit func(line []byte) error) error {
	from := 0
	for _, end := range c.ends {
		if err := emit(c.lines[from:end:end]); err != nil {
			return err
		}
		from = end
	}
	if cap(c.lines) > 4*shareBytes { // of a large row
		c.lines = nil
	}
	return c.err
}
