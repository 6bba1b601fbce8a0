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
	reads := func(data []byte) (same bool, err error) {
		var got [][]byte
		err = open(t, &disk{data: data}).Rows(t.Context(), nil, func(line []byte) error { got = append(got, bytes.Clone(line)); return nil })
		var damage *DamageError
		var limit *LimitError
		if err != nil && !errors.As(err, &damage) && !errors.As(err, &limit) {
			t.Error(err)
		}
		return bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)), err
	}
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
	found, random := 0, rand.New(rand.NewPCG(1, 2))
	for range 400 {
		at := random.IntN(len(whole))
		if without[at] || at < 4 { // the file begins with a mark that nobody reads
			continue
		}
		data := bytes.Clone(whole)
		data[at] ^= 1 << random.IntN(8)
		same, err := reads(data)
		if err == nil && !same {
			t.Errorf("byte %d of %d: other lines, and no error", at, len(whole))
		}
		if err != nil {
			found++
		}
	}
	if found < 100 {
		t.Errorf("%d damages were found", found)
	}
	otherEncodings(t, f, whole, func(at, bit int, data []byte) {
		if same, err := reads(data); err == nil && !same {
			t.Errorf("bit %d of byte %d, of an encoding: other lines, and no error", bit, at)
		}
	})
}

// otherEncodings turns each bit of the heads of data pages that makes another encoding of them. No checksum of a page
// covers its head.
func otherEncodings(t *testing.T, f *File, whole []byte, each func(at, bit int, data []byte)) {
	t.Helper()
	turned := 0
	for _, g := range f.groups[1:2] {
		for column := range f.layout.leaves {
			for part := f.data(g, column); part.Length > 0; {
				h, ok := readPageHead(whole[part.Offset:part.end()])
				if !ok {
					t.Fatalf("no head of a page at byte %d", part.Offset)
				}
				for bit := range 8 * h.size {
					at := int(part.Offset) + bit/8
					data := bytes.Clone(whole)
					data[at] ^= 1 << (bit % 8)
					if other, ok := readPageHead(data[part.Offset:part.end()]); ok && h.fields[headV2] && other.encoding != h.encoding {
						each(at, bit%8, data)
						turned++
					}
				}
				n := int64(h.size) + h.stored
				part = Part{part.Offset + n, part.Length - n}
			}
		}
	}
	if turned < 100 {
		t.Errorf("%d bits make another encoding", turned)
	}
}
