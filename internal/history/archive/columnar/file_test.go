package columnar

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"docket/internal/record/subject"
)

// disk is a file in memory that counts what is read of it.
type disk struct {
	data  []byte
	mu    sync.Mutex
	bytes int64
	reads int
}

func (d *disk) ReadAt(_ context.Context, p []byte, off int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes += int64(len(p))
	d.reads++
	copy(p, d.data[off:])
	return nil
}

func (d *disk) since() (int64, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, r := d.bytes, d.reads
	d.bytes, d.reads = 0, 0
	return n, r
}

var byHost = subject.Spec{Kind: subject.RequestedByHost}

func write(t testing.TB, o Options, all [][]byte) *disk {
	t.Helper()
	var out bytes.Buffer
	if o.Columns == nil {
		o.Columns = table()
	}
	w, err := NewWriter(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &disk{data: out.Bytes()}
}

func open(t testing.TB, d *disk) *File {
	t.Helper()
	f, err := Open(t.Context(), d, int64(len(d.data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRows_ComeBackAsWritten(t *testing.T) {
	t.Parallel()
	all := lines(t, 5000, 3)
	d := write(t, Options{Subject: byHost, GroupRows: 1100}, all)
	f := open(t, d)
	if f.Groups() != 5 || f.NumRows() != 5000 {
		t.Fatal(f)
	}
	var whole bytes.Buffer
	n := 0
	err := f.Rows(t.Context(), &whole, func(line []byte) error {
		if !bytes.Equal(line, all[n]) {
			t.Fatalf("row %d is\n%s, not\n%s", n, line, all[n])
		}
		n++
		return nil
	})
	if err != nil || n != len(all) || !bytes.Equal(whole.Bytes(), d.data) {
		t.Errorf("%d rows, %d bytes of %d, %v", n, whole.Len(), len(d.data), err)
	}
}

func TestFind_ReadsFewPages(t *testing.T) {
	t.Parallel()
	all := lines(t, 60_000, 3)
	d := write(t, Options{Subject: byHost, GroupRows: 20_000}, all)
	d.since()
	f := open(t, d)
	if n, reads := d.since(); n > tail+1000 || reads > 2 {
		t.Errorf("open: %d bytes in %d reads", n, reads)
	}
	for _, i := range []int{0, 19_999, 20_000, 31_234, 59_999} {
		rows, err := f.Find(t.Context(), idOf(all[i]))
		if err != nil || len(rows) != 1 || !bytes.Equal(rows[0].Line, all[i]) || rows[0].ID != idOf(all[i]) {
			t.Fatalf("%d: %d rows, %v", i, len(rows), err)
		}
		n, reads := d.since()
		t.Logf("%d bytes of %d in %d reads", n, len(d.data), reads)
	}
	if rows, err := f.Find(t.Context(), "nobody"); err != nil || len(rows) > 0 {
		t.Errorf("%v, %v", rows, err)
	}
	if n, reads := d.since(); n > 200 {
		t.Errorf("a filter: %d bytes in %d reads", n, reads)
	}
}

func idOf(line []byte) string { return string(line[16 : 16+36]) }
