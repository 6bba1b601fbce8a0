package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/history/archive/columnar"
)

// bytesShelf has one file.
type bytesShelf struct {
	Shelf
	data []byte
}

func (s bytesShelf) Range(_ context.Context, _ string, offset, length int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(bytes.NewReader(s.data), offset, length)), nil
}

// Any read of a file gives what was written. If a bit turned in a block that has a sum, each read of the block says so.
// Blocks without a sum are read as they are.
func TestAt_ComparesSums(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 6*sumBlock).Draw(t, "size")
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i*7 + i>>9)
		}
		var parts []columnar.Part
		for from := int64(0); from < size && rapid.Bool().Draw(t, "more"); {
			p := columnar.Part{Offset: rapid.Int64Range(from, size-1).Draw(t, "part")}
			p.Length = rapid.Int64Range(1, size-p.Offset).Draw(t, "length")
			parts, from = append(parts, p), p.Offset+p.Length
		}
		var s summer
		for rest := data; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "written")
			_, _ = s.Write(rest[:n]) // it calculates, and never fails
			rest = rest[n:]
		}
		of := File{Name: "n", Bytes: size, Sums: s.of(parts)}
		if !of.proper() {
			t.Fatalf("%+v of %v is not proper", of.Sums, parts)
		}
		summed := func(at int64) bool {
			block := at / sumBlock
			for _, p := range parts {
				if p.Offset/sumBlock <= block && block <= (p.Offset+p.Length-1)/sumBlock {
					return true
				}
			}
			return false
		}
		at := rapid.Int64Range(0, size-1).Draw(t, "bit")
		bad := bytes.Clone(data)
		bad[at] ^= 1
		off := rapid.Int64Range(0, size-1).Draw(t, "from")
		n := rapid.Int64Range(0, size-off).Draw(t, "bytes")
		got := make([]byte, n)
		if err := At(bytesShelf{data: data}, of).ReadAt(t.Context(), got, off); err != nil || !bytes.Equal(got, data[off:off+n]) {
			t.Fatalf("%d bytes from %d are not what was written: %v", n, off, err)
		}
		err := At(bytesShelf{data: bad}, of).ReadAt(t.Context(), got, off)
		var damage *columnar.DamageError
		block := at / sumBlock
		touches := n > 0 && off/sumBlock <= block && block <= (off+n-1)/sumBlock
		switch {
		case touches && summed(at):
			if !errors.As(err, &damage) {
				t.Fatalf("byte %d differs, and a read of %d from %d says %v", at, n, off, err)
			}
		case err != nil || !bytes.Equal(got, bad[off:off+n]):
			t.Fatalf("byte %d differs, and has no sum or is elsewhere; a read of %d from %d says %v", at, n, off, err)
		}
		var again summer
		_, _ = again.Write(bad) // it calculates, and never fails
		if _, differs := again.differ(&of, 0); differs != summed(at) {
			t.Fatalf("the whole file differs: %v", differs)
		}
	})
}

func TestManifest_SumsOfOtherBlocksAreRefused(t *testing.T) {
	t.Parallel()
	shelf := Dir(t.TempDir())
	m := parquet(t, shelf, fewLines(50))
	if len(m.Files[0].Sums) == 0 {
		t.Fatal("a file has no sums")
	}
	for name, sums := range map[string][]Sums{
		"behind the end": {{Block: m.Files[0].Bytes/sumBlock + 1, CRC32C: make([]byte, 4)}},
		"out of order":   {{Block: 0, CRC32C: make([]byte, 4)}, {Block: 0, CRC32C: make([]byte, 4)}},
		"before it":      {{Block: -1, CRC32C: make([]byte, 4)}},
		"half":           {{CRC32C: make([]byte, 3)}},
		"none":           {{}},
	} {
		changed := *m
		changed.Files = append([]File{m.Files[0]}, m.Files[1:]...)
		changed.Files[0].Sums = sums
		b, err := json.Marshal(&changed)
		if err != nil {
			t.Fatal(err)
		}
		if err := shelf.Put(t.Context(), m.Name()+manifestSuffix, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		if _, err := Whole(t.Context(), shelf, m.Table, nil); !isBroken(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.Files[0].Sums[0].CRC32C[0]++
	if err := Check(t.Context(), shelf, m, nil); !isBroken(err) {
		t.Errorf("a wrong sum: %v", err)
	}
}
