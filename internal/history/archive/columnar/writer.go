package columnar

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"docket/internal/record/decision"
	"docket/internal/record/subject"
)

// A group of rows is what a reader looks at at once: it has a filter of ids and one of subjects. Its compressed pages
// are in memory while it is written.
const (
	groupRows  = 250_000
	groupBytes = 128 << 20 // of lines
	pageBytes  = 256 << 10 // of a column, before compression
	batchRows  = 256
	batchBytes = 256 << 10
)

// Options are what a file needs beside its rows.
type Options struct {
	Columns []Column
	// Subject names the place of the subject. A search for subjects of another place reads payloads.
	Subject subject.Spec
	// Program is the name and version of the writer.
	Program, Version string
	// GroupRows limits the rows of a group; 0: 250,000.
	GroupRows int64
}

// Writer writes rows in the order of (ts, decision_id). It is for one goroutine. Another one compresses a batch while the next
// one is made: see [Writer.Close] and [Writer.Abandon].
type Writer struct {
	layout  *layout
	subject subject.Spec
	to      *parquet.GenericWriter[any]
	out     *output
	bounded []int // columns whose least and greatest values are kept
	long    bool  // one of their values is
	columns []*parquet.ColumnWriter

	batch   [][]parquet.Value // by column
	arena   []byte            // of the batch's values
	spare   [][]parquet.Value // of the batch before, until written says its end
	used    []byte            // the arena of that one
	written chan error        // nil: no batch is on its way to the columns
	rows    int64             // of the group
	bytes   int64             // of the group
	most    int64             // rows of a group
	large   int64             // bytes of a group, of lines

	cells       [][]byte // of the present row, in the line's notation
	exact       bool     // the values of the present row are known to give back its line
	payload     []byte
	scratch     []byte
	rebuilt     []byte
	sets        map[[repeatedCount]bool]string
	revisionsOf revisions
	builder     builder
	kept        int64 // rows that keep their line
}

// NewWriter begins a file. Nothing is written before the first row or Close.
func NewWriter(to io.Writer, o Options) (*Writer, error) {
	l, err := newLayout(o.Columns)
	if err != nil {
		return nil, err
	}
	columns, err := l.describe()
	if err != nil {
		return nil, fmt.Errorf("describe the columns: %w", err)
	}
	options := []parquet.WriterOption{
		l.schema, parquet.CreatedBy(o.Program, o.Version, ""), parquet.PageBufferSize(pageBytes), parquet.WriteBufferSize(1 << 18), parquet.DataPageStatistics(false),
		parquet.DictionaryMaxBytes(8 << 20), parquet.KeyValueMetadata(keyColumns, columns), parquet.KeyValueMetadata(keySubject, o.Subject.String()),
		parquet.ColumnIndexSizeLimit(func([]string) int { return 64 }),
		parquet.BloomFilters(parquet.SplitBlockFilter(12, l.columns[l.id].As), parquet.SplitBlockFilter(8, Subject)),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending(l.columns[l.ts].As), parquet.Ascending(l.columns[l.id].As))),
	}
	for _, name := range l.unbounded() {
		options = append(options, parquet.SkipPageBounds(name))
	}
	out := &output{to: to}
	w := &Writer{
		layout: l, subject: o.Subject, out: out, bounded: l.bounded(), to: parquet.NewGenericWriter[any](out, options...), most: groupRows, large: groupBytes, batch: make([][]parquet.Value, l.leaves), spare: make([][]parquet.Value, l.leaves),
		cells: make([][]byte, len(l.columns)), sets: map[[repeatedCount]bool]string{}, revisionsOf: revisions{}, builder: builder{layout: l},
	}
	if o.GroupRows > 0 {
		w.most = o.GroupRows
	}
	w.columns = w.to.ColumnWriters()
	return w, nil
}

// unbounded are the columns whose least and greatest values help nobody, and can be long.
func (l *layout) unbounded() []string {
	names := []string{Line, Without}
	for _, c := range l.columns {
		if c.kind == asJSON || c.kind == asBytes || c.kind == asText && c.Name != "path" && c.Name != "service" {
			names = append(names, c.As)
		}
	}
	return names
}

// bounded are the columns of texts whose least and greatest values are kept.
func (l *layout) bounded() (all []int) {
	without := l.unbounded()
	for i, field := range l.schema.Fields() {
		if !slices.Contains(without, field.Name()) && field.Type().Kind() == parquet.ByteArray {
			all = append(all, i)
		}
	}
	return all
}

// RowError says that a line is not a row of these columns. It quotes nothing.
type RowError struct{ Problem string }

func (e *RowError) Error() string { return "the row " + e.Problem }

// Write adds a row. line is not kept.
func (w *Writer) Write(line []byte) error {
	if w.rows > 0 && (w.rows >= w.most || w.bytes+int64(len(line)) > w.large) {
		if err := w.endGroup(); err != nil {
			return err
		}
	}
	at := len(w.arena)
	w.arena = append(w.arena, line...)
	line = w.arena[at:len(w.arena):len(w.arena)]
	if err := w.add(line); err != nil {
		return err
	}
	w.rows++
	w.bytes += int64(len(line))
	if len(w.batch[0]) >= batchRows || len(w.arena) >= batchBytes {
		return w.flush()
	}
	return nil
}

// split finds the values of a line.
func (w *Writer) split(line []byte) error {
	return Split(line, len(w.layout.columns), func(i int) string { return w.layout.columns[i].Name }, w.cells)
}

// Split finds the values of a line, in the notation of JSON. Its members are in the order of the columns. A column that
// is NULL has no member, and its cell is nil. The cells are parts of line.
func Split(line []byte, columns int, name func(i int) string, cells [][]byte) error {
	clear(cells)
	column := 0
	in := decision.Into(line, 0)
	for in.Next() {
		for column < columns && !in.Is(name(column)) {
			column++
		}
		if column == columns {
			return &RowError{"has a member that is no column, or is out of order"}
		}
		cells[column] = line[in.Value:in.End]
		column++
	}
	if in.Torn() || in.Behind() != len(line) {
		return &RowError{"is not a JSON object"}
	}
	return nil
}

// Text is the text of a JSON string; of any other value, the value as it is written.
func Text(cell []byte) []byte {
	switch {
	case len(cell) < 2 || cell[0] != '"':
		return cell
	case bytes.IndexByte(cell, '\\') >= 0:
		return []byte(decision.Text(cell))
	}
	return cell[1 : len(cell)-1]
}

// add puts a row into the batch.
func (w *Writer) add(line []byte) error {
	row, err := w.row(line)
	if err != nil {
		return err
	}
	l := w.layout
	if !row[l.added[Line]].IsNull() {
		w.kept++
	}
	for _, i := range w.bounded {
		w.long = w.long || !row[i].IsNull() && len(row[i].ByteArray()) > longBound
	}
	for i, v := range row {
		w.batch[i] = append(w.batch[i], l.level(i, v))
	}
	return nil
}

// row converts a line to values, and checks that the line comes back out of them.
func (w *Writer) row(line []byte) ([]parquet.Value, error) {
	row, err := w.values(line)
	if err != nil {
		return nil, err
	}
	if w.exact {
		return row, nil
	}
	if w.rebuilt, err = w.builder.line(w.rebuilt[:0], row); err != nil || string(w.rebuilt) != string(line) {
		row[w.layout.added[Line]] = parquet.ByteArrayValue(line)
	}
	return row, nil
}

// values converts a line to values. They are valid as long as the line and the arena are, and until the next call.
func (w *Writer) values(line []byte) ([]parquet.Value, error) {
	if err := w.split(line); err != nil {
		return nil, err
	}
	l := w.layout
	w.exact = w.framed(line)
	micros, ok := int64(0), w.cells[l.ts] != nil
	if ok {
		micros, ok = readTime(w.cells[l.ts])
	}
	if !ok || w.cells[l.id] == nil {
		return nil, &RowError{"has no decision_id or no time"}
	}
	var s shortened
	var raw []byte
	if l.raw >= 0 && w.cells[l.raw] != nil {
		raw = w.cells[l.raw]
		s = w.shorten(raw, w.cells, micros)
		at := len(w.arena)
		w.arena = append(w.arena, s.payload...)
		s.payload = w.arena[at:len(w.arena):len(w.arena)]
	}
	row := w.builder.row(l.leaves)
	for i := range l.columns {
		row[i] = w.value(i, s.payload)
		w.exact = w.exact && (i == l.raw || w.same(i, row[i]))
	}
	row[l.ts] = parquet.Int64Value(micros)
	if s.without != "" {
		row[l.added[Without]] = text(s.without)
	}
	if s.nanos > 0 {
		row[l.added[Nanos]] = parquet.Int32Value(int32(s.nanos))
	}
	w.derive(row, &s, raw)
	return row, nil
}

func text(s string) parquet.Value { return parquet.ByteArrayValue([]byte(s)) }

// level sets what tells NULL from a value.
func (l *layout) level(i int, v parquet.Value) parquet.Value {
	if v.IsNull() || i == l.id || i == l.ts {
		return v.Level(0, 0, i)
	}
	return v.Level(0, 1, i)
}

// value converts the value of a column; NULL where its type cannot hold it.
func (w *Writer) value(i int, payload []byte) parquet.Value {
	cell := w.cells[i]
	if cell == nil {
		return parquet.NullValue()
	}
	switch w.layout.columns[i].kind {
	case asText:
		if cell[0] == '"' {
			return parquet.ByteArrayValue(Text(cell))
		}
	case asJSON:
		if i == w.layout.raw {
			return parquet.ByteArrayValue(payload)
		}
		return parquet.ByteArrayValue(cell)
	case asBool:
		return parquet.BooleanValue(cell[0] == 't')
	case asInt32:
		if n, err := strconv.ParseInt(string(cell), 10, 32); err == nil {
			return parquet.Int32Value(int32(n))
		}
	case asInt64:
		if n, err := strconv.ParseInt(string(cell), 10, 64); err == nil {
			return parquet.Int64Value(n)
		}
	case asTime:
		if n, ok := readTime(cell); ok {
			return parquet.Int64Value(n)
		}
	case asBytes:
		at := len(w.arena)
		if b, ok := readBytes(w.arena, cell); ok {
			w.arena = b
			return parquet.ByteArrayValue(b[at:len(b):len(b)])
		}
	}
	return parquet.NullValue()
}

// flush hands the batch to the columns, once these have the one before.
func (w *Writer) flush() error {
	if err := w.wait(); err != nil {
		return err
	}
	batch := w.batch
	w.batch, w.spare, w.arena, w.used = w.spare, w.batch, w.used, w.arena
	if cap(w.arena) > 16*batchBytes { // of a large payload
		w.arena = nil
	}
	w.arena = w.arena[:0]
	written := make(chan error, 1)
	w.written = written
	go func() { written <- w.put(batch) }()
	return nil
}

// put writes a batch into the columns, and empties it.
func (w *Writer) put(batch [][]parquet.Value) error {
	for i, values := range batch {
		if len(values) == 0 {
			continue
		}
		if _, err := w.columns[i].WriteRowValues(values); err != nil {
			return fmt.Errorf("write a column: %w", err)
		}
		clear(values) // each of them would keep an arena
		batch[i] = values[:0]
	}
	return nil
}

// wait waits until the columns have the batch before the present one.
func (w *Writer) wait() (err error) {
	if w.written != nil {
		err, w.written = <-w.written, nil
	}
	return err
}

// Abandon ends a file that is not closed.
func (w *Writer) Abandon() {
	_ = w.wait() // the caller has the error for which it gives the file up
}

func (w *Writer) endGroup() error {
	if err := errors.Join(w.flush(), w.wait()); err != nil {
		return err
	}
	w.rows, w.bytes = 0, 0
	if err := w.to.Flush(); err != nil {
		return fmt.Errorf("write a group of rows: %w", err)
	}
	return nil
}

// Kept returns the number of rows that keep their line beside their columns.
func (w *Writer) Kept() int64 { return w.kept }

// Close writes what is left, and the file's end. It does not close what it writes to.
func (w *Writer) Close() error {
	err := errors.Join(w.flush(), w.wait())
	if err == nil && w.long {
		if err = w.endGroup(); err == nil {
			w.out.held = &bytes.Buffer{}
		}
	}
	if err == nil {
		err = w.to.Close()
	}
	if err == nil && w.long {
		err = w.out.end()
	}
	if err != nil {
		return fmt.Errorf("end the file: %w", err)
	}
	return nil
}

// Unchecked returns the parts of a closed file that have no checksum of their own, in order: filters, and from the bounds
// of pages on to the end. Pages have theirs.
func (w *Writer) Unchecked() []Part {
	var parts []Part
	end := w.out.bytes
	for _, g := range w.to.File().Metadata().RowGroups {
		for _, c := range g.Columns {
			if n := int64(c.MetaData.BloomFilterLength); n > 0 {
				parts = append(parts, Part{c.MetaData.BloomFilterOffset, n})
			}
			end = min(end, c.ColumnIndexOffset, c.OffsetIndexOffset)
		}
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Offset, b.Offset) })
	return append(parts, Part{end, w.out.bytes - end})
}

var errValues = errors.New("a column has too few values")
