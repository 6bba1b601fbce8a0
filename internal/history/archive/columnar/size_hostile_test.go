package columnar

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"
)

// The rows of hostile files have at most a line of 1 MiB, so a page has at most 17 MiB.
const (
	hostileLine = 1 << 20
	hostileCost = 64 << 20 // bytes that a question to a small hostile file may allocate, together
)

// ask asks a file everything, and returns the first error and what was allocated.
func ask(t testing.TB, data []byte) (allocated uint64, err error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := &disk{data: data}
	f, err := OpenWithin(t.Context(), short{d}, int64(len(data)), hostileLine)
	if err == nil {
		err = errors.Join(
			f.Rows(t.Context(), io.Discard, func([]byte) error { return nil }),
			f.FindIn(t.Context(), all(f), "nobody", nil),
			f.Search(t.Context(), Question{Paths: []string{"http/*"}}, func(Row) (bool, error) { return true, nil }),
			f.Search(t.Context(), Question{Oldest: true}, func(Row) (bool, error) { return true, nil }),
		)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

func all(f *File) (groups []int) {
	for n := range f.Groups() {
		groups = append(groups, n)
	}
	return groups
}

// short fails where the file ends, as a shelf does.
type short struct{ of *disk }

func (s short) ReadAt(ctx context.Context, p []byte, off int64) error {
	if off < 0 || off+int64(len(p)) > int64(len(s.of.data)) {
		return io.ErrUnexpectedEOF
	}
	return s.of.ReadAt(ctx, p, off)
}

// refused reports whether an error is of the types that a damaged or hostile file gives, and names a place where it has to.
func refused(err error) bool {
	var damage *DamageError
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit.Place != "" && limit.Asked > limit.Most
	}
	return errors.As(err, &damage)
}

// footer decodes the description of a file.
func footer(t testing.TB, data []byte) (m format.FileMetaData, start int) {
	t.Helper()
	start = len(data) - int(footerOf(data))
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, data[start:len(data)-8], &m); err != nil {
		t.Fatal(err)
	}
	return m, start
}

// describing replaces the description of a file.
func describing(t testing.TB, data []byte, change func(m *format.FileMetaData)) []byte {
	t.Helper()
	m, start := footer(t, data)
	change(&m)
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, &m)
	if err != nil {
		t.Fatal(err)
	}
	return framed(data[:start], b)
}

func framed(body, description []byte) []byte {
	out := slices.Concat(body, description)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(description))), "PAR1"...)
}

// onePage replaces the pages of a column by a hostile one, and corrects the places.
func onePage(t testing.TB, data []byte, column int, head format.PageHeader, body []byte) []byte {
	t.Helper()
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, &head)
	if err != nil {
		t.Fatal(err)
	}
	_, start := footer(t, data)
	page := append(b, body...)
	out := slices.Concat(data[:start], page)
	index := format.OffsetIndex{PageLocations: []format.PageLocation{{Offset: int64(start), CompressedPageSize: int32(len(page))}}}
	places, err := thrift.Marshal(&thrift.CompactProtocol{}, &index)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(len(out))
	out = append(out, places...)
	return describing(t, framed(out, data[start:len(data)-8]), func(m *format.FileMetaData) {
		c := &m.RowGroups[0].Columns[column]
		c.MetaData.DataPageOffset, c.MetaData.DictionaryPageOffset, c.MetaData.TotalCompressedSize = int64(start), 0, int64(len(page))
		c.OffsetIndexOffset, c.OffsetIndexLength = at, int32(len(places))
	})
}

// bomb is a zstd frame of zeros without a size: each block of four bytes becomes 128 KiB.
func bomb(blocks int) []byte {
	b := []byte{0x28, 0xB5, 0x2F, 0xFD, 0, 7 << 3}
	for i := range blocks {
		head := uint32(zstdBlock)<<3 | 1<<1
		if i == blocks-1 {
			head |= 1
		}
		b = append(b, byte(head), byte(head>>8), byte(head>>16), 0)
	}
	return b
}

func v2(values, made, stored int32, e format.Encoding) format.PageHeader {
	h := format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: made, CompressedPageSize: stored}
	h.DataPageHeaderV2.Valid = true
	h.DataPageHeaderV2.V = format.DataPageHeaderV2{NumValues: values, NumRows: values, Encoding: e}
	return h
}

// hostile are files that ask for much.
func hostile(t testing.TB, good []byte) map[string][]byte {
	t.Helper()
	f := open(t, &disk{data: good})
	id, ts, rows := f.layout.id, f.layout.ts, int32(f.groups[0].rows)
	path := slices.IndexFunc(f.layout.columns, func(c stored) bool { return c.Name == "path" })
	all := map[string][]byte{}
	whole := slices.Clone(good)
	binary.LittleEndian.PutUint32(whole[len(whole)-8:], math.MaxUint32)
	all["a description of 4 GiB"] = whole
	whole = append(make([]byte, mostFooter+100), good...)
	binary.LittleEndian.PutUint32(whole[len(whole)-8:], mostFooter+1)
	all["a long description"] = whole
	for name, list := range map[string][]byte{
		"schema":     {0x15, 2, 0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 7},                     // version, then a list of 2^31 structures
		"groups":     {0x15, 2, 0x29, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 7},                     // of groups
		"names":      {0x15, 2, 0x49, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 7},                     // of keys
		"text":       {0x15, 2, 0x58, 0xFF, 0xFF, 0xFF, 0xFF, 7},                           // of the program's name
		"deep":       bytes.Repeat([]byte{0x1C}, 1<<20),                                    // structures in structures
		"empty ones": append([]byte{0x29, 0xFC, 0x80, 0x80, 0x40}, make([]byte, 1<<20)...), // a million of groups
	} {
		all["a description with many "+name] = framed(good[:100], list)
	}
	change := func(name string, change func(m *format.FileMetaData)) {
		all[name] = describing(t, good, change)
	}
	change("a schema with many children", func(m *format.FileMetaData) { m.Schema[0].NumChildren.V = math.MaxInt32 })
	change("a column with children", func(m *format.FileMetaData) {
		m.Schema[1].NumChildren.V, m.Schema[1].NumChildren.Valid = math.MaxInt32, true
	})
	change("a group of many rows", func(m *format.FileMetaData) {
		m.RowGroups[0].NumRows = 1 << 50
		for i := range m.RowGroups[0].Columns {
			m.RowGroups[0].Columns[i].MetaData.NumValues = 1 << 50
		}
	})
	change("a group out of order", func(m *format.FileMetaData) { m.RowGroups[0].Ordinal = 1000 })
	change("a column of 4 EiB", func(m *format.FileMetaData) { m.RowGroups[0].Columns[id].MetaData.TotalCompressedSize = 1 << 62 })
	change("a column before the file", func(m *format.FileMetaData) { m.RowGroups[0].Columns[id].MetaData.DataPageOffset = -5 })
	change("places of 2 GiB", func(m *format.FileMetaData) { m.RowGroups[0].Columns[id].OffsetIndexLength = math.MaxInt32 })
	change("bounds of 2 GiB", func(m *format.FileMetaData) { m.RowGroups[0].Columns[path].ColumnIndexLength = math.MaxInt32 })
	change("a filter of 2 GiB", func(m *format.FileMetaData) { m.RowGroups[0].Columns[id].MetaData.BloomFilterLength = math.MaxInt32 })
	change("another compression", func(m *format.FileMetaData) { m.RowGroups[0].Columns[id].MetaData.Codec = format.Gzip })
	change("long names of columns", func(m *format.FileMetaData) {
		for i := range m.KeyValueMetadata {
			if m.KeyValueMetadata[i].Key == keyColumns {
				m.KeyValueMetadata[i].Value = "[" + strings.Repeat("{},", mostColumns/3) + "{}]"
			}
		}
	})
	page := func(name string, column int, h format.PageHeader, body []byte) {
		all["a page with "+name] = onePage(t, good, column, h, body)
	}
	page("2 GiB", id, v2(rows, math.MaxInt32, 10, format.DeltaLengthByteArray), make([]byte, 10))
	page("2^31 values", id, v2(math.MaxInt32, 10, 10, format.Plain), make([]byte, 10))
	page("more than is there", id, v2(rows, 10, math.MaxInt32, format.Plain), make([]byte, 10))
	page("a bomb", id, v2(rows, 100, int32(len(bomb(50_000))), format.Plain), bomb(50_000))
	some := v2(rows, 100, int32(len(bomb(120))), format.Plain)
	again, err := thrift.Marshal(&thrift.CompactProtocol{}, &some)
	if err != nil {
		t.Fatal(err)
	}
	page("many others, which are bombs", id, some, slices.Concat(bomb(120), bytes.Repeat(slices.Concat(again, bomb(120)), 40)))
	huge := []byte{0x28, 0xB5, 0x2F, 0xFD, 0xE0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0}
	page("a frame of 16 GiB", id, v2(rows, 100, int32(len(huge)), format.Plain), huge)
	delta := binary.AppendUvarint([]byte{0x80, 1, 4}, math.MaxInt32)
	delta = append(delta, 0, 0, 0, 0, 0, 0)
	page("2^31 differences", ts, v2(rows, 100, 0, format.DeltaBinaryPacked), nil)
	packed, _ := better.Encode(nil, delta)
	page("2^31 packed differences", ts, v2(rows, int32(len(delta)), int32(len(packed)), format.DeltaBinaryPacked), packed)
	page("2^31 lengths", id, v2(rows, int32(len(delta)), int32(len(packed)), format.DeltaLengthByteArray), packed)
	run := append([]byte{1}, bytes.Repeat(append(binary.AppendUvarint(nil, math.MaxInt32<<1), 1), 100)...)
	packed, _ = better.Encode(nil, run)
	page("2^31 places in a dictionary", path, v2(rows, int32(len(run)), int32(len(packed)), format.RLEDictionary), packed)
	levels := v2(rows, 100, int32(len(run)-1), format.Plain)
	levels.DataPageHeaderV2.V.DefinitionLevelsByteLength = int32(len(run) - 1)
	page("2^31 levels", path, levels, run[1:])
	dictionary := format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: 20, CompressedPageSize: int32(len(packed))}
	dictionary.DictionaryPageHeader.Valid = true
	dictionary.DictionaryPageHeader.V = format.DictionaryPageHeader{NumValues: rows, Encoding: format.Plain}
	page("a dictionary that says many", path, dictionary, packed)
	v1 := format.PageHeader{Type: format.DataPage, UncompressedPageSize: 20, CompressedPageSize: 10}
	v1.DataPageHeader.Valid = true
	v1.DataPageHeader.V = format.DataPageHeader{NumValues: rows, Encoding: format.Plain}
	page("the old head", id, v1, make([]byte, 10))
	return all
}

// TestOpen_HostileSizes: a file that asks for gigabytes is refused with its place, and costs little.
func TestOpen_HostileSizes(t *testing.T) { //nolint:paralleltest // it measures what the process allocates
	good := write(t, Options{Subject: byHost}, lines(t, 300, 3)).data
	if _, err := ask(t, good); err != nil {
		t.Fatal(err)
	}
	for name, data := range hostile(t, good) {
		allocated, err := ask(t, data)
		if !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
		if allocated > hostileCost+2*uint64(len(data)) {
			t.Errorf("%s: %d MiB", name, allocated>>20)
		}
	}
}

// TestFind_LongRowIsRefused: a row that is longer than the limit is not made, and the error has its place.
func TestFind_LongRowIsRefused(t *testing.T) {
	t.Parallel()
	line := fmt.Appendf(nil, `{"decision_id":"d","ts":%s,"raw":{"input": "%s"}}`, quotedTime(nil, 1785542400000000), strings.Repeat("x", 5000))
	d := write(t, Options{Subject: byHost}, [][]byte{line})
	f, err := OpenWithin(t.Context(), d, int64(len(d.data)), 5000)
	if err != nil {
		t.Fatal(err)
	}
	var limit *LimitError
	if _, err := f.Find(t.Context(), "d"); !errors.As(err, &limit) || limit.Asked != int64(len(line)) || limit.Most != 5000 || limit.Place != "group 0, row 0" {
		t.Errorf("%v", err)
	}
}

// TestFrames_BoundIsTrue: the bound of frames, which is told without decompressing them, is true.
func TestFrames_BoundIsTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		data := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "data"), rapid.IntRange(0, 3000).Draw(rt, "times"))
		packed, err := better.Encode(nil, data)
		if err != nil {
			rt.Fatal(err)
		}
		f, ok := framesOf(packed)
		if !ok || f.most < int64(len(data)) || f.most > int64(len(data))+zstdBlock {
			rt.Fatalf("%d of %d, %t", f.most, len(data), ok)
		}
		begin, ok := f.begin(nil)
		if !ok || !bytes.HasPrefix(data, begin) || len(data) > 0 && len(begin) == 0 {
			rt.Fatalf("%d bytes at the beginning of %d, %t", len(begin), len(data), ok)
		}
	})
}

// TestWriter_LongPathKeepsFooterShort: a decision with a path of megabytes does not make a file that readers refuse.
func TestWriter_LongPathKeepsFooterShort(t *testing.T) {
	t.Parallel()
	var rows [][]byte
	for i := range 12 {
		path := fmt.Sprintf("p%d", i)
		if i%3 == 1 {
			path += strings.Repeat("/x", 1<<20)
		}
		rows = append(rows, fmt.Appendf(nil, `{"decision_id":"d%04d","ts":%s,"path":"%s"}`, i, quotedTime(nil, 1785542400000000+int64(i)), path))
	}
	d := write(t, Options{Subject: byHost, GroupRows: 3}, rows)
	if n := footerOf(d.data); n > 64<<10 {
		t.Errorf("the description has %d bytes", n)
	}
	f := open(t, d)
	for i, path := range []string{"p0", "p1/*", "p2", "p3", "p4/*", "nothing"} {
		n := 0
		err := f.Search(t.Context(), Question{Paths: []string{path}}, func(r Row) (bool, error) {
			if n++; !bytes.Equal(r.Line, rows[i]) {
				t.Errorf("%s: another row", path)
			}
			return true, nil
		})
		if want := min(1, 5-i); err != nil || n != want {
			t.Errorf("%s: %d rows, want %d, %v", path, n, want, err)
		}
	}
	n := 0
	if err := f.Rows(t.Context(), io.Discard, func(line []byte) error { n++; return nil }); err != nil || n != len(rows) {
		t.Errorf("%d rows, %v", n, err)
	}
}
