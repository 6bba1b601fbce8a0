package columnar

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// A bit that turned outside of the parts without a checksum is found while the rows are read, or changes none of them.
func TestWriter_UncheckedIsAllThatHasNoChecksum(t *testing.T) {
	t.Parallel()
	want := lines(t, 300, 3)
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Columns: table(), Subject: byHost, GroupRows: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range want {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, without := out.Bytes(), make([]bool, out.Len())
	for _, p := range w.Unchecked() {
		for at := p.Offset; at < p.end(); at++ {
			without[at] = true
		}
	}
	f := open(t, &disk{data: whole})
	for _, g := range f.groups {
		for _, of := range []Part{f.outline.filters[g.meta].blocks, g.subjects.blocks, f.pages(g), f.bounds(g)} {
			for at := of.Offset; at < of.end(); at++ {
				if !without[at] {
					t.Fatalf("byte %d of a filter, of places or of bounds is not told", at)
				}
			}
		}
	}
	found := 0
	for range 400 {
		at := rand.IntN(len(whole))
		if without[at] || at < 4 { // the file begins with a mark that nobody reads
			continue
		}
		data := bytes.Clone(whole)
		data[at] ^= 1 << rand.IntN(8)
		var got [][]byte
		err := open(t, &disk{data: data}).Rows(t.Context(), nil, func(line []byte) error { got = append(got, bytes.Clone(line)); return nil })
		var damage *DamageError
		var limit *LimitError
		if err == nil && !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) || err != nil && !errors.As(err, &damage) && !errors.As(err, &limit) {
			t.Errorf("byte %d of %d: %d lines, %v", at, len(whole), len(got), err)
		}
		if err != nil {
			found++
		}
	}
	if found < 100 {
		t.Errorf("%d damages were found", found)
	}
}
