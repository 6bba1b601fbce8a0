package columnar

import (
	"fmt"
	"math"
)

// The most that a file may ask for. A writer stays far below. Sizes are bytes in memory, where nothing else is said.
const (
	mostFooter    = 16 << 20 // the description of a file, as it is stored
	mostDescribed = 96 << 20 // and once it is decoded
	mostColumns   = 1 << 20  // the text that names the columns
	mostGroupRows = 1 << 20
	mostIndex     = 32 << 20 // places or bounds of a group's pages, as they are stored
	mostFilter    = 32 << 20
	mostHeader    = 64 << 10 // of a page, as it is stored
	mostPage      = 16 << 20 // besides one row
	mostBatch     = 32 << 20 // rows that a search makes at once; a single row may be longer
	mostAtOnce    = 1000     // rows of an id that are made at once
	largeFetch    = 8 << 20  // the end of a longer part is read first, so that nothing is allocated for what is not there

	// MostLine is the longest line that [Open] reads, in bytes. Postgres has no longer text.
	MostLine = 1 << 30
)

// LimitError says that a file asks for more than this program gives. It quotes nothing. The file may be intact, if its
// rows are longer than the limit.
type LimitError struct {
	Place string // column, group and byte of the file
	What  string
	Asked int64 // bytes, or a count
	Most  int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the file has %s of %d at %s, and the limit is %d", e.What, e.Asked, e.Place, e.Most)
}

// limits are those of an open file.
type limits struct {
	line  int64 // the longest row
	page  int64 // a page before compression
	group int64 // the stored pages of a group of rows
}

// limitsFor lets a page have one row more than a writer puts together. A group is written from lines, whose text can be
// in columns, in the exact line, and in what is derived.
func limitsFor(line int64) limits {
	line = min(line, MostLine)
	return limits{line: line, page: min(mostPage+line, math.MaxInt32), group: 3 * (groupBytes + line)}
}
