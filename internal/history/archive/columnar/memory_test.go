//go:build !race

// The race detector needs several times the memory and the time. One goroutine does all that is measured here.

package columnar

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"
)

// TestSize_OfADecision: the goal is 130 bytes for a decision as the bench makes them, and 0.8 of gzip lines.
func TestSize_OfADecision(t *testing.T) {
	t.Parallel()
	const n, goal, part = 20_000, 130, 0.8
	all := lines(t, n, 12)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	for _, line := range all {
		_, _ = zip.Write(append(line, '\n'))
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	d := write(t, Options{Subject: byHost}, all)
	size, before := float64(len(d.data))/n, float64(zipped.Len())/n
	if size > goal || size > part*before {
		t.Errorf("%.1f bytes a decision, %.1f as gzip lines", size, before)
	}
	f := open(t, d)
	for _, g := range f.file.Metadata().RowGroups {
		for _, c := range g.Columns {
			t.Logf("%-20v %6.2f bytes", c.MetaData.PathInSchema, float64(c.MetaData.TotalCompressedSize)/n)
		}
	}
}

// TestWriter_BoundedMemory: many large payloads that nothing compresses end groups early.
func TestWriter_BoundedMemory(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const large, group, n = 1 << 20, 8 << 20, 60
	w, err := NewWriter(discard{}, Options{Columns: table(), Subject: byHost})
	if err != nil {
		t.Fatal(err)
	}
	w.large = group
	random := newRandom()
	var first, most uint64
	for i := range n {
		line := fmt.Appendf(nil, `{"decision_id":"d%d","ts":%s,"raw":{"input": "%s"}}`, i, quotedTime(nil, 1785542400000000+int64(i)), random.hex(large))
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			if err := w.wait(); err != nil { // a collection counts as kept all that another goroutine allocates meanwhile
				t.Fatal(err)
			}
			var m runtime.MemStats
			runtime.GC() // twice, as pools of buffers last for one
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			if i == 0 {
				first = m.HeapAlloc
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB are kept at most, %d at the first row", most>>20, first>>20)
	if most > first+5*group {
		t.Errorf("%d MiB are kept, %d at the first row", most>>20, first>>20)
	}
}

// TestWriter_LetsLargeRowsGo has a large row behind fewer and fewer small ones. No batch keeps it.
func TestWriter_LetsLargeRowsGo(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const large, n = 5 << 20, 20
	w, err := NewWriter(discard{}, Options{Columns: table(), Subject: byHost})
	if err != nil {
		t.Fatal(err)
	}
	live := func() uint64 {
		if err := w.wait(); err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC() // twice, as pools of buffers last for one
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	zeros, at := strings.Repeat("0", large), 0
	add := func(text string) {
		at++
		if err := w.Write(fmt.Appendf(nil, `{"decision_id":"d%05d","ts":%s,"raw":{"input": "%s"}}`, at, quotedTime(nil, 1785542400000000+int64(at)), text)); err != nil {
			t.Fatal(err)
		}
	}
	add("1")
	before := live()
	for i := range n {
		for range n - i {
			add("1")
		}
		add(zeros)
	}
	if after := live(); after > before+6*large {
		t.Errorf("%d MiB are kept, %d before", after>>20, before>>20)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSearch_HostileRowsAreSplit: many rows, each with a page of zeros that compress to nothing, are not in memory
// together.
func TestSearch_HostileRowsAreSplit(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const n, size = 200, 1 << 20
	zeros := strings.Repeat("0", size)
	var all [][]byte
	for i := range n {
		all = append(all, fmt.Appendf(nil, `{"decision_id":"d%04d","ts":%s,"raw":{"input": "%s"}}`, i, quotedTime(nil, 1785542400000000+int64(i)), zeros))
	}
	d := write(t, Options{Subject: byHost}, all)
	d.data = describing(t, d.data, func(m *format.FileMetaData) { m.RowGroups[0].TotalByteSize = 0 }) // it says that its rows are short
	f, err := OpenWithin(t.Context(), d, int64(len(d.data)), 2*size)
	if err != nil {
		t.Fatal(err)
	}
	clear(all)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most, rows := m.HeapAlloc, uint64(0), 0
	err = f.Search(t.Context(), Question{}, func(r Row) (bool, error) {
		if rows++; rows%16 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		return true, nil
	})
	if err != nil || rows != n {
		t.Fatalf("%d rows, %v", rows, err)
	}
	if most > before+4*mostBatch {
		t.Errorf("%d MiB for %d MiB of rows", (most-before)>>20, n*size>>20)
	}
	some := make([]int64, 100)
	for i := range some {
		some[i] = int64(i)
	}
	rows = 0
	err = f.inBatches(f.view(t.Context()), f.groups[0], some, func(batch []Row) (bool, error) {
		bytes := 0
		for _, r := range batch {
			bytes += len(r.Line)
		}
		if rows += len(batch); bytes > mostBatch {
			t.Errorf("%d MiB are made at once", bytes>>20)
		}
		return true, nil
	})
	if err != nil || rows != len(some) {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestOpen_AnyChangeIsCheap: whatever is changed in a file, it is read, or refused with a typed error, and costs little.
func TestOpen_AnyChangeIsCheap(t *testing.T) { //nolint:paralleltest // it measures what the process allocates
	good := write(t, Options{Subject: byHost, GroupRows: 100}, lines(t, 300, 3)).data
	_, start := footer(t, good)
	rapid.Check(t, func(rt *rapid.T) {
		data := slices.Clone(good)
		from := rapid.SampledFrom([]int{0, start - 3000, start}).Draw(rt, "from")
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			at := rapid.IntRange(from, len(data)-1).Draw(rt, "at")
			copy(data[at:], rapid.SampledFrom([][]byte{{0xFF, 0xFF, 0xFF, 0xFF, 7}, {0}, {0xFC}, {0xFF, 0xFF, 3}, {0x7F}, {0x80, 0x80, 0x80, 0x80, 4}}).Draw(rt, "bytes"))
		}
		allocated, err := ask(t, data)
		if err != nil && !refused(err) {
			rt.Fatalf("%v", err)
		}
		if allocated > hostileCost {
			rt.Fatalf("%d MiB, %v", allocated>>20, err)
		}
	})
}
