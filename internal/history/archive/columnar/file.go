package columnar

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/parquet-go/parquet-go"
)

// DamageError says that a file is not as it was written. It quotes nothing.
type DamageError struct{ Problem string }

func (e *DamageError) Error() string { return "the file " + e.Problem }

// damaged returns the storage's error if there is one. Else the file itself is the cause.
func damaged(problem string, err error) error {
	if err == nil {
		return nil
	}
	var source *sourceError
	if errors.As(err, &source) {
		return source.err
	}
	var damage *DamageError
	if errors.As(err, &damage) {
		return damage
	}
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &DamageError{problem}
}

// Row is a decision of a file.
type Row struct {
	ID   string
	Time time.Time // microseconds, UTC
	// Verdict, Subject and Revision are what the file says beside the table's columns. Empty: none.
	Verdict, Subject, Revision string
	// Line is the row as the archive's JSON: each column of the table by its name, see docs/archive.md.
	Line []byte
}

// File is an open file. It may be used by several goroutines.
type File struct {
	from    ReaderAt
	size    int64
	file    *parquet.File
	layout  *layout
	subject string // the setting by which the column was filled
	groups  []rowGroup
	outline *Outline
	limits  limits
}

// rowGroup is a group of rows with its columns.
type rowGroup struct {
	chunks []*parquet.FileColumnChunk
	first  int64 // row of the file
	rows   int64
	meta   int          // place in the metadata
	known  *atomic.Bool // the places of its pages were read

	subjects *filter
}

const tail = 64 << 10 // read at once from the end

// Open is [OpenWithin] for the longest rows that Postgres can make.
func Open(ctx context.Context, from ReaderAt, size int64) (*File, error) {
	return OpenWithin(ctx, from, size, MostLine)
}

// OpenWithin reads the end of a file: one request of 64 KiB, and a second if the description of the file is longer. A
// row has at most line bytes. All that it asks for is checked before memory is taken: see [LimitError].
func OpenWithin(ctx context.Context, from ReaderAt, size, line int64) (f *File, err error) {
	defer guard(&err)
	v := &view{ctx: ctx, from: from, size: size}
	const least = 12
	if size < least {
		return nil, &DamageError{"is too short"}
	}
	last := min(size, tail)
	if err := v.fetch(Part{size - last, last}); err != nil {
		return nil, damaged("", err)
	}
	footer := footerOf(v.parts[0].data)
	switch {
	case footer > size:
		return nil, &DamageError{"has no readable end"}
	case footer > mostFooter:
		return nil, &LimitError{fmt.Sprintf("byte %d", size-footer), "a description", footer, mostFooter}
	case footer > last:
		v.forget()
		if err := v.fetch(Part{size - footer, footer}); err != nil {
			return nil, damaged("", err)
		}
	}
	const frame = 8
	if data, ok := v.bytes(Part{size - footer, footer - frame}); !ok {
		return nil, &DamageError{"has no readable end"}
	} else if err := checkFooter(data); err != nil {
		return nil, err
	}
	p, err := parquet.OpenFile(v, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.SkipMagicBytes(true), parquet.ReadBufferSize(16<<10))
	if err != nil {
		return nil, damaged("has no readable end", err)
	}
	f = &File{from: from, size: size, file: p, limits: limitsFor(line)}
	if err := f.understand(); err != nil {
		return nil, err
	}
	return f, nil
}

// footerOf is the length of the description with its frame.
func footerOf(end []byte) int64 {
	n := end[len(end)-8:]
	return int64(uint32(n[0])|uint32(n[1])<<8|uint32(n[2])<<16|uint32(n[3])<<24) + 8
}

// guard turns a panic of the library on a damaged file into an error.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = &DamageError{"cannot be read"}
	}
}

func (f *File) understand() error {
	columns, ok := f.file.Lookup(keyColumns)
	if !ok || len(columns) > mostColumns {
		return &DamageError{"does not say its columns"}
	}
	var err error
	if f.layout, err = described(columns); err != nil {
		return &DamageError{"does not say its columns"}
	}
	f.subject, _ = f.file.Lookup(keySubject)
	fields := f.file.Schema().Fields()
	want := f.layout.schema.Fields()
	if len(fields) != len(want) {
		return &DamageError{"has other columns than it says"}
	}
	for i := range want {
		if fields[i].Name() != want[i].Name() || !fields[i].Leaf() || fields[i].Repeated() || fields[i].Type().Kind() != want[i].Type().Kind() || fields[i].Optional() != want[i].Optional() {
			return &DamageError{"has other columns than it says"}
		}
	}
	first := int64(0)
	f.outline = &Outline{size: f.size}
	for n, g := range f.file.RowGroups() {
		group := rowGroup{first: first, rows: g.NumRows(), meta: n, known: &atomic.Bool{}}
		for _, c := range g.ColumnChunks() {
			chunk, ok := c.(*parquet.FileColumnChunk)
			if !ok {
				return &DamageError{"cannot be read"}
			}
			group.chunks = append(group.chunks, chunk)
		}
		if len(group.chunks) != f.layout.leaves || group.rows < 0 {
			return &DamageError{"has other columns than it says"}
		}
		if err := f.checkGroup(group); err != nil {
			return err
		}
		first += group.rows
		group.subjects = f.filter(group, f.layout.added[Subject])
		f.outline.filters = append(f.outline.filters, f.filter(group, f.layout.id))
		f.groups = append(f.groups, group)
	}
	return nil
}

// Bytes is about what it keeps in memory: its description, and the places and bounds of pages once they were read.
func (f *File) Bytes() int64 {
	n := f.outline.Bytes()
	for _, g := range f.groups {
		n += 1024
		for _, c := range f.file.Metadata().RowGroups[g.meta].Columns {
			n += 1024 + 4*(int64(c.OffsetIndexLength)+int64(c.ColumnIndexLength)) + int64(len(c.MetaData.Statistics.MinValue)+len(c.MetaData.Statistics.MaxValue))
		}
	}
	return n
}

// NumRows returns the number of rows.
func (f *File) NumRows() int64 { return f.file.NumRows() }

// Groups returns the number of groups of rows.
func (f *File) Groups() int { return len(f.groups) }

// Columns returns the columns of the table.
func (f *File) Columns() []Column {
	all := make([]Column, len(f.layout.columns))
	for i, c := range f.layout.columns {
		all[i] = c.Column
	}
	return all
}

// SubjectBy returns the setting by which the file's subjects were found.
func (f *File) SubjectBy() string { return f.subject }

// data is the part of the file with the pages of a column.
func (f *File) data(g rowGroup, column int) Part {
	c := &f.file.Metadata().RowGroups[g.meta].Columns[column].MetaData
	from := c.DataPageOffset
	if d := c.DictionaryPageOffset; d > 0 {
		from = min(from, d)
	}
	return Part{from, c.TotalCompressedSize}
}

// pages is the part of the file with the places of a group's pages.
func (f *File) pages(g rowGroup) Part {
	var all Part
	for _, c := range f.file.Metadata().RowGroups[g.meta].Columns {
		all = around(all, Part{c.OffsetIndexOffset, int64(c.OffsetIndexLength)})
	}
	return all
}

// bounds is the part of the file with the bounds of a group's pages.
func (f *File) bounds(g rowGroup) Part {
	var all Part
	for _, c := range f.file.Metadata().RowGroups[g.meta].Columns {
		all = around(all, Part{c.ColumnIndexOffset, int64(c.ColumnIndexLength)})
	}
	return all
}

// around is the least part that has both.
func around(a, b Part) Part {
	if a.Length == 0 {
		return b
	}
	from := min(a.Offset, b.Offset)
	return Part{from, max(a.end(), b.end()) - from}
}

func (f *File) view(ctx context.Context) *view {
	return &view{ctx: ctx, from: f.from, size: f.size}
}

// describeRow fills what a row says beside its line.
func (f *File) describeRow(values []parquet.Value, line []byte) Row {
	l := f.layout
	said := func(name string) string {
		if v := values[l.added[name]]; !v.IsNull() {
			return string(v.ByteArray())
		}
		return ""
	}
	return Row{ID: string(values[l.id].ByteArray()), Time: time.UnixMicro(values[l.ts].Int64()).UTC(), Verdict: said(Verdict), Subject: said(Subject), Revision: said(Revision), Line: line}
}

func (f *File) String() string {
	return fmt.Sprintf("%d rows in %d groups", f.NumRows(), len(f.groups))
}
