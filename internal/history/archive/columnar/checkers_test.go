package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// TestProve_LinesInOrder: several goroutines make the lines, which come as one makes them. Lines before a damaged row come,
// and none behind it.
func TestProve_LinesInOrder(t *testing.T) {
	t.Parallel()
	rows := lines(t, 1300, 3)
	good := write(t, Options{Subject: byHost, GroupRows: 700}, rows).data
	for _, wrong := range []int{len(rows), 0, 100, 511} {
		data := good
		if wrong < len(rows) {
			data = forged(t, rows[:600], func(w *Writer, n int) {
				if string(w.batch[w.layout.id][n].ByteArray()) == idOf(rows[wrong]) {
					w.batch[w.layout.added[Verdict]][n] = w.layout.level(w.layout.added[Verdict], text("~"))
				}
			})
		}
		for _, goroutines := range []int{1, 3, mostCheckers} {
			n := 0
			err := open(t, &disk{data: data}).prove(t.Context(), &bytes.Buffer{}, func(line []byte) error {
				if !bytes.Equal(line, rows[n]) {
					return fmt.Errorf("line %d is another", n)
				}
				n++
				return nil
			}, goroutines)
			var damage *DamageError
			if n != wrong || errors.As(err, &damage) != (wrong < len(rows)) {
				t.Errorf("%d goroutines: %d rows before row %d, %v", goroutines, n, wrong, err)
			}
		}
	}
}

// TestProve_EachGoroutineCounts: the last row of a group is the only one beyond a bound, and the last goroutine sees it.
func TestProve_EachGoroutineCounts(t *testing.T) {
	t.Parallel()
	rows := lines(t, 300, 3)
	good := write(t, Options{Subject: byHost}, rows).data
	ts := open(t, &disk{data: good}).layout.ts
	data := describing(t, good, func(m *format.FileMetaData) {
		most := m.RowGroups[0].Columns[ts].MetaData.Statistics.MaxValue
		binary.LittleEndian.PutUint64(most, binary.LittleEndian.Uint64(most)-1)
	})
	for _, goroutines := range []int{1, 3} {
		err := open(t, &disk{data: data}).prove(t.Context(), &bytes.Buffer{}, none, goroutines)
		var damage *DamageError
		if !errors.As(err, &damage) {
			t.Errorf("%d goroutines prove a wrong bound: %v", goroutines, err)
		}
	}
}

// TestProve_EmitFails: an error of the taker ends it as it is.
func TestProve_EmitFails(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	n := 0
	err := open(t, write(t, Options{Subject: byHost}, lines(t, 500, 3))).prove(t.Context(), &bytes.Buffer{}, func([]byte) error {
		if n++; n == 77 {
			return refused
		}
		return nil
	}, 3)
	if !errors.Is(err, refused) || n != 77 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestAtOnce_LargeRows: rows that are large are few at once, and one row of any size is at once.
func TestAtOnce_LargeRows(t *testing.T) {
	t.Parallel()
	large, small := parquet.ByteArrayValue([]byte(strings.Repeat("x", shareBytes/2))), parquet.ByteArrayValue([]byte("x"))
	huge := parquet.ByteArrayValue([]byte(strings.Repeat("x", 3*shareBytes)))
	columns := []cursor{{values: []parquet.Value{small, large, large, huge, small, small}}, {values: make([]parquet.Value, 6)}}
	var ends []int
	for from := 0; from < 6; {
		from = atOnce(columns, from, 6)
		ends = append(ends, from)
	}
	if fmt.Sprint(ends) != "[2 3 4 6]" {
		t.Errorf("rows at once end at %v", ends)
	}
}
