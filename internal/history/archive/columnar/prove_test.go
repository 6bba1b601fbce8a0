package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

func none([]byte) error { return nil }

// proved proves a file, and returns its lines.
func proved(t testing.TB, data []byte) (all [][]byte, err error) {
	t.Helper()
	f, err := Open(t.Context(), short{&disk{data: data}}, int64(len(data)))
	if err != nil {
		return nil, err
	}
	var whole bytes.Buffer
	err = f.Prove(t.Context(), &whole, func(line []byte) error { all = append(all, bytes.Clone(line)); return nil })
	if err == nil && !bytes.Equal(whole.Bytes(), data) {
		t.Errorf("%d bytes of %d were passed on", whole.Len(), len(data))
	}
	return all, err
}

// bounds replaces the bounds of a column's pages.
func bounds(t testing.TB, data []byte, column int, change func(x *format.ColumnIndex)) []byte {
	t.Helper()
	m, start := footer(t, data)
	c := m.RowGroups[0].Columns[column]
	var x format.ColumnIndex
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, data[c.ColumnIndexOffset:c.ColumnIndexOffset+int64(c.ColumnIndexLength)], &x); err != nil {
		t.Fatal(err)
	}
	change(&x)
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, &x)
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Concat(data[:start], b)
	return describing(t, framed(out, data[start:len(data)-8]), func(m *format.FileMetaData) {
		m.RowGroups[0].Columns[column].ColumnIndexOffset, m.RowGroups[0].Columns[column].ColumnIndexLength = int64(start), int32(len(b))
	})
}

// replaced replaces the places of a column's pages.
func replaced(t testing.TB, data []byte, column int, change func(x *format.OffsetIndex)) []byte {
	t.Helper()
	m, start := footer(t, data)
	c := m.RowGroups[0].Columns[column]
	var x format.OffsetIndex
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, data[c.OffsetIndexOffset:c.OffsetIndexOffset+int64(c.OffsetIndexLength)], &x); err != nil {
		t.Fatal(err)
	}
	change(&x)
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, &x)
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Concat(data[:start], b)
	return describing(t, framed(out, data[start:len(data)-8]), func(m *format.FileMetaData) {
		m.RowGroups[0].Columns[column].OffsetIndexOffset, m.RowGroups[0].Columns[column].OffsetIndexLength = int64(start), int32(len(b))
	})
}

// forged writes rows, of which change replaces values.
func forged(t testing.TB, all [][]byte, change func(w *Writer, n int)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Options{Columns: table(), Subject: byHost})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
		if n := len(w.batch[0]); n > 0 {
			change(w, n-1)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestProve_EachDamageIsFound: all that answers rely on is proved. The rows alone do not show any of these faults.
func TestProve_EachDamageIsFound(t *testing.T) {
	t.Parallel()
	rows := lines(t, 4000, 3)
	good := write(t, Options{Subject: byHost}, rows).data
	f := open(t, &disk{data: good})
	l := f.layout
	path, service, labels := -1, -1, -1
	for i, c := range l.columns {
		switch c.Name {
		case "path":
			path = i
		case "service":
			service = i
		case "labels":
			labels = i
		}
	}
	faults := map[string][]byte{}
	for name, column := range map[string]int{"ids": l.id, "subjects": l.added[Subject]} {
		blocks := f.filter(f.groups[0], column).blocks
		b := slices.Clone(good)
		clear(b[blocks.Offset:blocks.end()])
		faults["an empty filter of "+name] = b
		b = slices.Clone(good)
		for i := blocks.Offset; i < blocks.end(); i++ {
			if b[i] != 0 {
				b[i] = 0
				break
			}
		}
		faults["eight bits of the filter of "+name] = b
		faults["a moved filter of "+name] = describing(t, good, func(m *format.FileMetaData) { m.RowGroups[0].Columns[column].MetaData.BloomFilterLength -= 32 })
		faults["no filter of "+name] = describing(t, good, func(m *format.FileMetaData) {
			m.RowGroups[0].Columns[column].MetaData.BloomFilterLength, m.RowGroups[0].Columns[column].MetaData.BloomFilterOffset = 0, 0
		})
	}
	for name, column := range map[string]int{"ts": l.ts, "path": path, "service": service, "verdict": l.added[Verdict], "subject": l.added[Subject]} {
		low, high := []byte{1}, []byte{0xFF}
		if column == l.ts {
			low, high = make([]byte, 8), bytes.Repeat([]byte{0x7F}, 8)
		}
		faults["a low bound of "+name] = bounds(t, good, column, func(x *format.ColumnIndex) { x.MaxValues[0] = low })
		faults["a high bound of "+name] = bounds(t, good, column, func(x *format.ColumnIndex) { x.MinValues[len(x.MinValues)-1] = high })
		faults["an empty page of "+name] = bounds(t, good, column, func(x *format.ColumnIndex) { x.NullPages[0] = true })
		faults["fewer bounds of "+name] = bounds(t, good, column, func(x *format.ColumnIndex) {
			x.NullPages, x.MinValues, x.MaxValues = append(x.NullPages, false), append(x.MinValues, x.MinValues[0]), append(x.MaxValues, x.MaxValues[0])
		})
		faults["a bound of the group of "+name] = describing(t, good, func(m *format.FileMetaData) {
			m.RowGroups[0].Columns[column].MetaData.Statistics.MaxValue = low
		})
	}
	if service < 0 || path < 0 {
		t.Fatal("the columns have no path or service")
	}
	raw := replaced(t, good, l.raw, func(x *format.OffsetIndex) {
		if len(x.PageLocations) < 2 {
			t.Fatal("there is one page")
		}
		x.PageLocations[1].FirstRowIndex++
	})
	faults["a page that begins elsewhere"] = raw
	for _, name := range []string{Verdict, Subject, Revision} {
		faults["a wrong "+name] = forged(t, rows[:50], func(w *Writer, n int) {
			if n == 7 {
				w.batch[w.layout.added[name]][n] = w.layout.level(w.layout.added[name], text("~"))
			}
		})
	}
	faults["no subject"] = forged(t, rows[:50], func(w *Writer, n int) {
		w.batch[w.layout.added[Subject]][n] = w.layout.level(w.layout.added[Subject], parquet.NullValue())
	})
	faults["a column that its line does not have"] = forged(t, rows[:50], func(w *Writer, n int) {
		if n == 7 {
			w.batch[w.layout.added[Line]][n] = w.layout.level(w.layout.added[Line], parquet.ByteArrayValue(rows[7]))
			w.batch[path][n] = w.layout.level(path, text("another/path"))
		}
	})
	faults["a line that is kept without need"] = forged(t, rows[:50], func(w *Writer, n int) {
		if n == 7 {
			w.batch[w.layout.added[Line]][n] = w.layout.level(w.layout.added[Line], parquet.ByteArrayValue(rows[7]))
		}
	})
	for column, value := range map[int]string{l.raw: `{},"source_topic":"x"`, labels: `{"a": "b"},"bundles":{}`} {
		faults["a wrong split of "+l.columns[column].Name] = forged(t, rows[:50], func(w *Writer, n int) {
			if n == 7 {
				w.batch[column][n] = w.layout.level(column, text(value))
			}
		})
	}
	seventh := func(values map[int]parquet.Value) []byte {
		return forged(t, rows[:50], func(w *Writer, n int) {
			if n != 7 {
				return
			}
			for column, v := range values {
				w.batch[column][n] = w.layout.level(column, v)
			}
		})
	}
	requested := l.members[requestedByMember]
	for name, values := range map[string]map[int]parquet.Value{
		"year after 9999":               {l.ts: parquet.Int64Value(endReadable)},
		"nanosecond":                    {l.added[Nanos]: parquet.Int32Value(-5000)},
		"microsecond of nanoseconds":    {l.added[Nanos]: parquet.Int32Value(1000)},
		"nanosecond of another payload": {l.added[Nanos]: parquet.Int32Value(5), l.added[Without]: text("path")},
		"space before a payload":        {l.raw: text(` {"a": 1}`)},
		"space before labels":           {labels: text("\n{}")},
		"space behind labels":           {labels: text("{} ")},
		"payload that is cut off":       {l.raw: text(`{"a": 1`)},
		"member that is there, too":     {l.raw: text(`{"requested_by": "B"}`), l.added[Without]: text("requested_by"), requested: parquet.NullValue(), l.added[Subject]: parquet.NullValue()},
		"member that is there twice":    {l.raw: text(`{"requested_by": "B"}`), l.added[Without]: text("requested_by"), requested: text("A"), l.added[Subject]: text("A")},
	} {
		faults["a wrong form: "+name] = seventh(values)
	}
	faults["another setting of the subject"] = describing(t, good, func(m *format.FileMetaData) {
		for i := range m.KeyValueMetadata {
			if m.KeyValueMetadata[i].Key == keySubject {
				m.KeyValueMetadata[i].Value = "decision_id"
			}
		}
	})
	if all, err := proved(t, good); err != nil || len(all) != len(rows) || !bytes.Equal(all[1234], rows[1234]) {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	for name, data := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := proved(t, data)
			var damage *DamageError
			if !errors.As(err, &damage) {
				t.Fatalf("it is proved: %v", err)
			}
			d := &disk{data: data}
			if same := strings.Contains(name, "wrong") || strings.Contains(name, "no subject"); same {
				return // the lines are built from other columns
			}
			if f, err := Open(t.Context(), d, int64(len(data))); err == nil && !strings.Contains(name, "begins elsewhere") {
				if err := f.Rows(t.Context(), io.Discard, none); err != nil {
					t.Errorf("its rows alone show it: %v", err)
				}
			}
		})
	}
}

// TestProve_OddRowsPass: NULL, long and odd values do not count as damage.
func TestProve_OddRowsPass(t *testing.T) {
	t.Parallel()
	var rows [][]byte
	for i := range 3000 {
		member := []string{"", `,"path":""`, `,"path":"p"`, fmt.Sprintf(`,"path":"%s%d"`, strings.Repeat("long/", 30), i), `,"service":"\u0001"`, `,"allowed":true,"raw":{"error": null}`, `,"path":"` + strings.Repeat("\u00ff", 100) + `"`, `,"stored_at":"infinity"`}[i/7%8]
		rows = append(rows, fmt.Appendf(nil, `{"decision_id":"d%d","ts":%s%s}`, i, quotedTime(nil, 1785542400000000+int64(i)), member))
	}
	for _, group := range []int64{0, 7} { // rows with infinity keep their lines
		if all, err := proved(t, write(t, Options{Subject: byHost, GroupRows: group}, rows).data); err != nil || len(all) != len(rows) {
			t.Errorf("%d rows, %v", len(all), err)
		}
	}
}
