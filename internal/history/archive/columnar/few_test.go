//go:build !race

// The race detector makes a file of this size take half a minute, and one goroutine does all that is measured here.

package columnar

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// many has two row groups. It is written once, and each test reads it on a disk of its own.
var many struct {
	sync.Once
	lines [][]byte
	data  []byte
}

func manyLines(t *testing.T) ([][]byte, *disk) {
	t.Helper()
	many.Do(func() {
		many.lines = lines(t, 40_000, 3)
		many.data = write(t, Options{Subject: byHost, GroupRows: 20_000}, many.lines).data
	})
	if many.data == nil {
		t.Fatal("the file was not written, see the other test")
	}
	return many.lines, &disk{data: many.data}
}

func TestFind_ReadsFewPages(t *testing.T) {
	t.Parallel()
	all, d := manyLines(t)
	f := open(t, d)
	if n, reads := d.since(); n > tail+1000 || reads > 2 {
		t.Errorf("open: %d bytes in %d reads", n, reads)
	}
	for _, i := range []int{0, 19_999, 20_000, 31_234, 39_999} {
		rows, err := f.Find(t.Context(), idOf(all[i]))
		if err != nil || len(rows) != 1 || !bytes.Equal(rows[0].Line, all[i]) || rows[0].ID != idOf(all[i]) {
			t.Fatalf("%d: %d rows, %v", i, len(rows), err)
		}
		ids := f.data(f.groups[0], f.layout.id).Length
		if n, reads := d.since(); n > ids+700_000 || reads > 20 {
			t.Errorf("%d bytes of %d in %d reads, of which ids have %d", n, len(d.data), reads, ids)
		}
	}
	if rows, err := f.Find(t.Context(), "nobody"); err != nil || len(rows) > 0 {
		t.Errorf("%v, %v", rows, err)
	}
	if n, reads := d.since(); n > 200 {
		t.Errorf("a filter: %d bytes in %d reads", n, reads)
	}
}

func TestSearch_ReadsFewPages(t *testing.T) {
	t.Parallel()
	all, d := manyLines(t)
	f := open(t, d)
	mid := askedAt(t, all[30_000])
	for name, q := range map[string]struct {
		q    Question
		most int
	}{
		"another day":    {Question{Since: mid.Add(24 * time.Hour)}, 0},
		"another path":   {Question{Paths: []string{"aaa/*"}}, 0},
		"nobody":         {Question{Subject: "1.2.3.4.5", By: byHost}, 1000},
		"a second":       {Question{Since: mid, Until: mid.Add(time.Millisecond)}, len(d.data) / 2},
		"the newest row": {Question{}, len(d.data) / 2},
	} {
		d.since()
		n := 0
		err := f.Search(t.Context(), q.q, func(Row) (bool, error) { n++; return n < 20, nil })
		if read, _ := d.since(); err != nil || int(read) > q.most {
			t.Errorf("%s: %d rows, %d bytes of %d, %v", name, n, read, len(d.data), err)
		}
	}
}
