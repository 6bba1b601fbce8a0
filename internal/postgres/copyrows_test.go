package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/decision"
	"docket/internal/pipeline"
)

func someRows(n, padding int) (rows []pipeline.Row, at []int) {
	for i := range n {
		r := knownGood(time.Unix(int64(i), 0))
		r.Log.Raw = fmt.Appendf(nil, `{"pad":%q}`, strings.Repeat("x", padding))
		rows, at = append(rows, r), append(at, n-1-i)
	}
	return rows, at
}

// However much is asked for at a time, the same bytes come.
func TestRowsAreEncodedIntoWhateverBufferThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows, at := someRows(rapid.IntRange(0, 5).Draw(t, "rows"), rapid.IntRange(0, 300).Draw(t, "padding"))
		for i := range rows {
			if rapid.Bool().Draw(t, "empty") {
				rows[i].Log = &decision.Log{ID: "x", Time: time.Unix(0, 0)}
			}
		}
		want, err := io.ReadAll(newCopyReader(rows, at))
		if err != nil {
			t.Fatal(err)
		}
		reader := newCopyReader(rows, at)
		var got []byte
		for {
			buf := make([]byte, rapid.IntRange(1, 400).Draw(t, "size"))
			n, err := reader.Read(buf)
			got = append(got, buf[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil || n == 0 {
				t.Fatalf("%d bytes, %v", n, err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes in pieces are not the %d in one", len(got), len(want))
		}
		if n := fieldsOf(t, want); n != len(rows)*copyColumns {
			t.Fatalf("%d fields in %d rows", n, len(rows))
		}
	})
}

// fieldsOf walks through a file of COPY by its lengths alone.
func fieldsOf(t *rapid.T, b []byte) (n int) {
	b = b[len(signature)+8:]
	for {
		columns := int16(binary.BigEndian.Uint16(b))
		b = b[2:]
		if columns == trailer {
			if len(b) > 0 {
				t.Fatalf("%d bytes behind the end", len(b))
			}
			return n
		}
		for range columns {
			size := int32(binary.BigEndian.Uint32(b))
			b = b[4+max(size, 0):]
			n++
		}
	}
}

func TestEncodingRowsAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts what the whole process allocates
	rows, at := someRows(1000, 500)
	large, one := someRows(1, 300<<10)
	buf := make([]byte, 64<<10)
	for _, c := range []struct {
		rows []pipeline.Row
		at   []int
	}{{rows, at}, {large, one}} {
		reader := newCopyReader(c.rows, c.at)
		if n := testing.AllocsPerRun(5, func() {
			*reader = copyReader{rows: c.rows, at: c.at, next: -1}
			for {
				if _, err := reader.Read(buf); err != nil {
					break
				}
			}
		}); n != 0 {
			t.Errorf("%.0f allocations for %d rows", n, len(c.rows))
		}
	}
}

func TestTheLineOfCOPYIsFoundInAnyLanguageAndNothingElse(t *testing.T) {
	t.Parallel()
	for where, want := range map[string]int{
		"":                           0,
		"COPY decision_logs, line 7": 7,
		"COPY decision_logs, Zeile 12, Spalte raw":                        12,
		"COPY decision_logs, line 3, column x9":                           3,
		"JSON data, line 1: {\"a\nCOPY decision_logs, line 4, column raw": 4,
		"COPY decision_logs, line 99\nCOPY decision_logs, line 5":         5,
		"COPY other, line 8":                                              0,
		"SQL statement \"COPY decision_logs, line 6\"":                    0,
		"COPY decision_logs, line":                                        0,
		"COPY decision_logs, line 99999999999999999999999":                1<<63 - 1,
		"line 8": 0,
	} {
		if got := copyLine(where); got != want {
			t.Errorf("%q: %d, want %d", where, got, want)
		}
	}
	at := []int{5, 3}
	for line, want := range map[int]int{0: -1, 1: 5, 2: 3, 3: -1} {
		pg := serverSays("23514")
		pg.Where = fmt.Sprintf("COPY decision_logs, line %d", line)
		s, _ := asServerError(clean("act", located(pg, at)))
		if row, ok := s.Row(); ok != (want >= 0) || ok && row != want {
			t.Errorf("line %d is row %d (%v), want %d", line, row, ok, want)
		}
	}
}

func TestTheMemoryOfRedeliveryIsBounded(t *testing.T) {
	t.Parallel()
	var m memory
	for i := range 3 * maxSources {
		s := source{"t", int32(i)}
		m.note(s, true)
		if !m.has(s) || len(m.met) > maxSources {
			t.Fatalf("after %d: %d are known", i, len(m.met))
		}
	}
	s := source{"t", 3*maxSources - 1}
	m.note(s, false)
	if m.has(s) {
		t.Error("it is not forgotten")
	}
}

func TestAComparisonIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	rows, at := someRows(5000, 1000)
	large, _ := someRows(2, 2*maxPortion)
	rows, at = append(rows, large...), append(at, 5000, 5001)
	for sum := 0; sum < len(at); {
		n := portion(rows, at[sum:])
		size := 0
		for _, p := range compareColumns(rows, at[sum:sum+n]) {
			size += len(p)
		}
		if n < 1 || n > 1 && size > maxPortion+maxPortion/10 {
			t.Fatalf("%d rows of %d bytes in one", n, size)
		}
		sum += n
	}
}
