package bench

import (
	"errors"
	"fmt"
	"time"
)

// Sighting is how many rows a table had at a moment, and what the worker that writes them had used by then.
type Sighting struct {
	At   time.Time
	Rows int64
	CPU  time.Duration
}

// Sightings are those of one run, in their order, each with more rows than the one before.
type Sightings []Sighting

// Span is what came between two sightings.
type Span struct {
	Rows      int64
	Took, CPU time.Duration
}

// Rate is rows a second.
func (s Span) Rate() float64 { return float64(s.Rows) / s.Took.Seconds() }

var errSeenAtOnce = errors.New("all rows were seen at once: there is no rate in that")

// Steady is from the first row seen to the last. Rows that were there at the first sighting came before it, so they do not
// count. Neither does the time that the worker took to start.
func (s Sightings) Steady() (Span, error) { return s.since(0) }

// Warm is the second half: from the first sighting with at least half of all rows on.
func (s Sightings) Warm() (Span, error) {
	for i := range s {
		if s[i].Rows*2 >= s[len(s)-1].Rows {
			return s.since(i)
		}
	}
	return Span{}, errSeenAtOnce
}

func (s Sightings) since(i int) (Span, error) {
	if len(s)-i < 2 {
		return Span{}, errSeenAtOnce
	}
	from, to := s[i], s[len(s)-1]
	return Span{Rows: to.Rows - from.Rows, Took: to.At.Sub(from.At), CPU: to.CPU - from.CPU}, nil
}

// Census counts the rows of a table that only grows at its end, again and again, without reading it all each time: blocks into
// which no transaction writes any more are counted once. The zero value counts from the beginning.
type Census struct {
	settled int64 // blocks before this one are in base
	base    int64
	next    int64  // block that is to be settled next, once all transactions before xmax have ended
	xmax    uint64 // first transaction that had not begun when next was chosen
}

// Count is what one query finds, in one snapshot.
type Count struct {
	Below, All int64  // rows from Census.From on, before Census.Next and in all
	Blocks     int64  // of the table
	Xmin, Xmax uint64 // all transactions before Xmin have ended, none from Xmax on has begun
}

// openBlocks is how many blocks at the end are never settled: the table grows by many at a time, which later transactions fill.
const openBlocks = 512

// From is the place from which the next query has to count.
func (c *Census) From() string { return tid(c.settled) }

// Next is the place up to which it has to count apart.
func (c *Census) Next() string { return tid(c.next) }

func tid(block int64) string { return fmt.Sprintf("(%d,0)", block) }

// Add takes what a query found and returns how many rows there are.
func (c *Census) Add(n Count) int64 {
	rows := c.base + n.All
	if n.Xmin < c.xmax {
		return rows
	}
	c.base, c.settled = c.base+n.Below, c.next
	c.next, c.xmax = max(c.settled, n.Blocks-openBlocks), n.Xmax
	return rows
}

// Again makes the next query count from the beginning.
func (c *Census) Again() { *c = Census{} }
