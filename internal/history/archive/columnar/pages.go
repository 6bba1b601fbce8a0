package columnar

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// pageHead is what the head of a page says. Fields of a page of another kind are 0.
type pageHead struct {
	size             int // of the head itself, as it is stored
	kind             int64
	stored, made     int64 // bytes of the page behind its head, and after decompression
	values, rows     int64
	encoding         int64
	levels, repeated int64 // bytes
	fields           map[int]bool
}

// Fields of a page's head.
const (
	headKind, headMade, headStored, headV1, headDictionary, headV2 = 1, 2, 3, 5, 7, 8

	v2Values, v2Rows, v2Encoding, v2Levels, v2Repeated, v2Packed = 1, 3, 4, 5, 6, 7
)

func readPageHead(data []byte) (h pageHead, ok bool) {
	h.fields = map[int]bool{}
	h.size, ok = skim(data[:min(len(data), mostHeader)], mostHeader, func(path []int, v int64) {
		switch {
		case len(path) == 1 && path[0] == headKind:
			h.kind = v
		case len(path) == 1 && path[0] == headMade:
			h.made = v
		case len(path) == 1 && path[0] == headStored:
			h.stored = v
		case len(path) != 2:
		case path[0] == headDictionary && path[1] == 1, path[0] == headV2 && path[1] == v2Values:
			h.values = v
		case path[0] == headDictionary && path[1] == 2, path[0] == headV2 && path[1] == v2Encoding:
			h.encoding = v
		case path[0] == headV2 && path[1] == v2Rows:
			h.rows = v
		case path[0] == headV2 && path[1] == v2Levels:
			h.levels = v
		case path[0] == headV2 && path[1] == v2Repeated:
			h.repeated = v
		}
		h.fields[path[0]] = true
	}, nil)
	return h, ok
}

// checkColumn checks all pages of a column of a group, which are in memory. It adds their bytes after decompression to
// made, for all columns that are read together.
func (f *File) checkColumn(v *view, g rowGroup, column int, made *int64) error {
	whole := f.data(g, column)
	for at := whole.Offset; at < whole.end(); {
		n, err := f.checkPage(v, g, column, Part{at, whole.end() - at}, false)
		if err != nil {
			return err
		}
		if *made += v.made; *made > f.limits.group {
			return &LimitError{f.place(g, column, at), "pages", *made, f.limits.group}
		}
		at += n
	}
	return nil
}

// checkPage checks a page before the library decodes it, and returns its bytes in the file. The library takes memory as
// the head says, and as counts inside say. exact: the page fills the part.
func (f *File) checkPage(v *view, g rowGroup, column int, at Part, exact bool) (int64, error) {
	if n, ok := v.checked[at.Offset]; ok && (!exact || n == at.Length) {
		return n, nil
	}
	place := f.place(g, column, at.Offset)
	data, ok := v.bytes(at)
	if !ok {
		return 0, &DamageError{"has pages behind their column, " + place}
	}
	h, ok := readPageHead(data)
	if !ok || h.stored < 0 || h.stored > int64(len(data)-h.size) {
		return 0, &DamageError{"has a page without a proper head, " + place}
	}
	n := int64(h.size) + h.stored
	if exact && n != at.Length {
		return 0, &DamageError{"has a page of another size than its places say, " + place}
	}
	if h.made < 0 || h.values < 0 {
		return 0, &DamageError{"has a page without a proper head, " + place}
	}
	if h.made > f.limits.page {
		return 0, &LimitError{place, "a page", h.made, f.limits.page}
	}
	if h.values > g.rows {
		return 0, &LimitError{place, "a page with a count", h.values, g.rows}
	}
	if err := f.checkInside(v, g, column, &h, data[h.size:n], place); err != nil {
		return 0, err
	}
	v.made = h.made
	if v.checked == nil {
		v.checked = map[int64]int64{}
	}
	v.checked[at.Offset] = n
	return n, nil
}

// checkInside checks what is behind the head of a page.
func (f *File) checkInside(v *view, g rowGroup, column int, h *pageHead, data []byte, place string) error {
	optional := column != f.layout.id && column != f.layout.ts
	switch {
	case h.kind == int64(format.DictionaryPage) && h.fields[headDictionary] && h.encoding == int64(format.Plain):
	case h.kind != int64(format.DataPageV2) || !h.fields[headV2] || h.repeated != 0 || h.levels < 0 || h.levels > int64(len(data)) || h.rows != h.values || !optional && h.levels > 0 || !f.wrote(g, column, h.encoding):
		return &DamageError{"has a page of another kind than was written, " + place}
	default:
		n, ok := runs(data[:h.levels], 1)
		if !ok {
			return &DamageError{"has a page that cannot be decoded, " + place}
		}
		if n > h.values+8 {
			return &LimitError{place, "a page with levels", n, h.values}
		}
		data = data[h.levels:]
	}
	packed := f.file.Metadata().RowGroups[g.meta].Columns[column].MetaData.Codec == format.Zstd
	whole := frames{most: int64(len(data))}
	if packed {
		var ok bool
		if whole, ok = framesOf(data); !ok {
			return &DamageError{"has a page that is not compressed as was written, " + place}
		}
		if whole.most > f.limits.page {
			return &LimitError{place, "a page", whole.most, f.limits.page}
		}
		h.made = max(h.made, whole.most)
	}
	if h.kind == int64(format.DictionaryPage) {
		if 4*h.values > max(h.made, whole.most) {
			return &LimitError{place, "a dictionary with a count", h.values, h.made / 4}
		}
		return nil
	}
	return f.checkCounts(v, h, data, whole, packed, place)
}

// wrote reports whether a column of a group has data pages of an encoding, by the end of the file. The checksum of a page
// does not cover its head, and numbers of a dictionary read as plain ones are other values.
func (f *File) wrote(g rowGroup, column int, as int64) bool {
	return slices.ContainsFunc(f.file.Metadata().RowGroups[g.meta].Columns[column].MetaData.EncodingStats, func(s format.PageEncodingStats) bool {
		return s.PageType == format.DataPageV2 && int64(s.Encoding) == as
	})
}

// checkCounts checks what an encoding says of its own values.
func (f *File) checkCounts(v *view, h *pageHead, data []byte, whole frames, packed bool, place string) error {
	ok, n := true, int64(0)
	switch format.Encoding(h.encoding) {
	case format.Plain:
		return nil
	case format.RLEDictionary:
		if packed {
			data, ok = decompress(data, v.scratch[:0])
			v.keep(data)
		}
		if ok && len(data) > 0 {
			if data[0] > 32 {
				ok = false
			} else {
				n, ok = runs(data[1:], int64(data[0]))
			}
		}
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		if packed {
			data, ok = whole.begin(v.scratch[:0])
			v.keep(data)
		}
		if ok && len(data) > 0 {
			n, ok = deltaCount(data)
		}
	default:
		return &DamageError{"has a page of another kind than was written, " + place}
	}
	if !ok {
		return &DamageError{"has a page that cannot be decoded, " + place}
	}
	if n > h.values+8 {
		return &LimitError{place, "a page with a count", n, h.values}
	}
	return nil
}

// runs returns the number of values in runs, of so many bits each.
func runs(data []byte, bits int64) (total int64, ok bool) {
	const most = 1 << 40
	for len(data) > 0 {
		head, n := binary.Uvarint(data)
		if n <= 0 {
			return total, false
		}
		data = data[n:]
		count, bytes := int64(min(head>>1, most)), (bits+7)/8
		if head&1 == 1 {
			bytes = count * bits
			count *= 8
		}
		if bytes > int64(len(data)) {
			return total, false
		}
		data = data[bytes:]
		if total += count; total > most {
			return total, true
		}
	}
	return total, true
}

// deltaCount returns how many values the head of a delta encoding says.
func deltaCount(data []byte) (n int64, ok bool) {
	for range 3 { // size of a block, blocks inside it, values
		u, k := binary.Uvarint(data)
		if k <= 0 {
			return 0, false
		}
		n, data = int64(min(u, 1<<40)), data[k:]
	}
	return n, true
}

// place names a place for people.
func (f *File) place(g rowGroup, column int, at int64) string {
	name := "?"
	if fields := f.layout.schema.Fields(); column < len(fields) {
		name = fields[column].Name()
	}
	return fmt.Sprintf("column %.60q, group %d, byte %d", name, g.meta, at)
}

// checkPlaces checks the places of a column's pages: one behind the other from the first row, and all of the column.
func (f *File) checkPlaces(g rowGroup, column int, index *parquet.FileOffsetIndex) error {
	whole := f.data(g, column)
	at := f.file.Metadata().RowGroups[g.meta].Columns[column].MetaData.DataPageOffset
	row := int64(-1)
	for page := range index.NumPages() {
		first, size := index.FirstRowIndex(page), index.CompressedPageSize(page)
		if index.Offset(page) != at || size <= 0 || page == 0 && first != 0 || first <= row || first >= g.rows {
			return &DamageError{"has wrong places of pages, " + f.place(g, column, index.Offset(page))}
		}
		at, row = at+size, first
	}
	if at != whole.end() || index.NumPages() == 0 && g.rows > 0 {
		return &DamageError{"has wrong places of pages, " + f.place(g, column, at)}
	}
	return nil
}

// checkIndex checks the places or bounds of a column before the library decodes them.
func (f *File) checkIndex(v *view, g rowGroup, column int, at Part) error {
	data, ok := v.bytes(at)
	if ok {
		_, ok = skim(data, 4*mostIndex, nil, nil)
	}
	if !ok {
		return &DamageError{"has no proper places or bounds of pages, " + f.place(g, column, at.Offset)}
	}
	return nil
}

// checkFooter checks the description of a file before the library decodes it. Only the outermost structure has parts.
func checkFooter(data []byte) error {
	const schema, children = 2, 5
	elements, parents := 0, 0
	flat := true
	end, ok := skim(data, mostDescribed, func(path []int, v int64) {
		if slices.Equal(path, []int{schema, children}) && v != 0 {
			parents++
			flat = flat && parents == 1 && v == int64(elements)-1
		}
	}, func(path []int, n int) {
		if slices.Equal(path, []int{schema}) {
			elements += n
		}
	})
	if !ok || end != len(data) || !flat {
		return &DamageError{"has no readable end"}
	}
	return nil
}

// checkGroup checks what the description says of a group.
func (f *File) checkGroup(g rowGroup) error {
	meta := &f.file.Metadata().RowGroups[g.meta]
	if g.rows > mostGroupRows {
		return &LimitError{fmt.Sprintf("group %d", g.meta), "a group with rows", g.rows, mostGroupRows}
	}
	if int(meta.Ordinal) != g.meta {
		return &DamageError{"has groups out of order"}
	}
	var whole Part
	for i := range meta.Columns {
		c := &meta.Columns[i]
		data := f.data(g, i)
		wrong := c.MetaData.NumValues != g.rows || c.MetaData.DictionaryPageOffset > c.MetaData.DataPageOffset || c.MetaData.DataPageOffset > data.end()
		for _, one := range []Part{data, {c.OffsetIndexOffset, int64(c.OffsetIndexLength)}, {c.ColumnIndexOffset, int64(c.ColumnIndexLength)}, {c.MetaData.BloomFilterOffset, int64(c.MetaData.BloomFilterLength)}} {
			wrong = wrong || one.Offset < 0 || one.Length < 0 || one.Offset > f.size || one.Length > f.size-one.Offset
		}
		if codec := c.MetaData.Codec; wrong || codec != format.Zstd && codec != format.Uncompressed {
			return &DamageError{"has another column than it says, " + f.place(g, i, data.Offset)}
		}
		if n := int64(c.MetaData.BloomFilterLength); n > mostFilter {
			return &LimitError{f.place(g, i, c.MetaData.BloomFilterOffset), "a filter", n, mostFilter}
		}
		whole = around(whole, data)
	}
	for _, one := range []struct {
		what string
		Part
		most int64
	}{{"pages", whole, f.limits.group}, {"places of pages", f.pages(g), mostIndex}, {"bounds of pages", f.bounds(g), mostIndex}} {
		if one.Length > one.most {
			return &LimitError{fmt.Sprintf("group %d, byte %d", g.meta, one.Offset), one.what, one.Length, one.most}
		}
	}
	return nil
}
