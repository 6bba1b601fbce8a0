package bench

import (
	"testing"
	"time"
)

func seen(secondsRowsCPU ...int64) (made Sightings) {
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := 0; i < len(secondsRowsCPU); i += 3 {
		made = append(made, Sighting{
			At: begin.Add(time.Duration(secondsRowsCPU[i]) * time.Second), Rows: secondsRowsCPU[i+1], CPU: time.Duration(secondsRowsCPU[i+2]) * time.Second,
		})
	}
	return made
}

func TestSteady_LeavesOutStartAndFirstRows(t *testing.T) {
	t.Parallel()
	got, err := seen(7, 100, 5, 8, 400, 6, 17, 1100, 25).Steady()
	if want := (Span{Rows: 1000, Took: 10 * time.Second, CPU: 20 * time.Second}); err != nil || got != want || got.Rate() != 100 {
		t.Errorf("got %+v with %v a second, %v", got, got.Rate(), err)
	}
}

func TestWarm_BeginsAtHalfOfTheRows(t *testing.T) {
	t.Parallel()
	for _, half := range []int64{500, 501} {
		got, err := seen(0, 10, 0, 5, 499, 1, 6, half, 2, 8, 1000, 4).Warm()
		if want := (Span{Rows: 1000 - half, Took: 2 * time.Second, CPU: 2 * time.Second}); err != nil || got != want {
			t.Errorf("with %d at the half: %+v, %v", half, got, err)
		}
	}
}

func TestSteady_NoRateForRowsSeenAtOnce(t *testing.T) {
	t.Parallel()
	for _, s := range []Sightings{nil, seen(1, 1000, 1)} {
		if _, err := s.Steady(); err == nil {
			t.Errorf("steady of %v", s)
		}
		if _, err := s.Warm(); err == nil {
			t.Errorf("warm of %v", s)
		}
	}
	if _, err := seen(1, 10, 1, 2, 1000, 2).Warm(); err == nil {
		t.Error("warm of a second half that was seen at once")
	}
}

// table is one that grows at its end, as the census sees it.
type table []struct{ block, rows int64 }

func (t table) count(c *Census, blocks int64, xmin, xmax uint64) Count {
	n := Count{Blocks: blocks, Xmin: xmin, Xmax: xmax}
	for _, written := range t {
		if written.block >= c.settled {
			n.All += written.rows
			if written.block < c.next {
				n.Below += written.rows
			}
		}
	}
	return n
}

func TestCensus_ReadsSettledBlocksOnce(t *testing.T) {
	t.Parallel()
	var c Census
	rows := table{{0, 100}}
	if got := c.Add(rows.count(&c, 1000, 10, 12)); got != 100 || c.From() != "(0,0)" || c.Next() != "(488,0)" {
		t.Errorf("first: %d rows, from %s, next %s", got, c.From(), c.Next())
	}
	rows = append(rows, struct{ block, rows int64 }{700, 50})
	if got := c.Add(rows.count(&c, 2000, 12, 20)); got != 150 || c.From() != "(488,0)" || c.Next() != "(1488,0)" {
		t.Errorf("second: %d rows, from %s, next %s", got, c.From(), c.Next())
	}
	rows = append(rows, struct{ block, rows int64 }{1900, 7})
	if got := c.Add(rows.count(&c, 2000, 20, 21)); got != 157 || c.From() != "(1488,0)" {
		t.Errorf("third: %d rows, from %s", got, c.From())
	}
}

func TestCensus_SmallTableInFull(t *testing.T) {
	t.Parallel()
	var c Census
	rows := table{{0, 100}}
	for range 3 {
		if got := c.Add(rows.count(&c, 10, 12, 12)); got != 100 || c.From() != "(0,0)" || c.Next() != "(0,0)" {
			t.Fatalf("%d rows, from %s, next %s", got, c.From(), c.Next())
		}
	}
}

func TestCensus_LeavesBlocksOfOpenTransactions(t *testing.T) {
	t.Parallel()
	var c Census
	rows := table{{0, 100}}
	c.Add(rows.count(&c, 1000, 10, 12))
	if c.Add(rows.count(&c, 2000, 11, 20)); c.From() != "(0,0)" {
		t.Fatalf("settled up to %s while transaction 11 was open", c.From())
	}
	rows[0].rows += 30 // rows of transaction 11, seen once it is committed
	if got := c.Add(rows.count(&c, 2000, 20, 20)); got != 130 || c.From() != "(488,0)" {
		t.Errorf("%d rows, from %s", got, c.From())
	}
	if got := c.Add(rows.count(&c, 2000, 20, 20)); got != 130 {
		t.Errorf("settled with %d rows", got)
	}
}

func TestCensus_Again(t *testing.T) {
	t.Parallel()
	var c Census
	rows := table{{0, 100}}
	for range 3 {
		c.Add(rows.count(&c, 1000, 12, 12))
	}
	rows[0].rows++ // where the census does not look any more
	if got := c.Add(rows.count(&c, 1000, 12, 12)); got != 100 {
		t.Fatalf("%d rows", got)
	}
	c.Again()
	if got := c.Add(rows.count(&c, 1000, 12, 12)); got != 101 {
		t.Errorf("%d rows", got)
	}
}
