package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/record/decision"
)

func someRows(n, padding int) (rows []pipeline.Row, at []int) {
	for i := range n {
		r := madeUp.row(time.Unix(int64(i), 0), 0)
		r.Log.Raw = fmt.Appendf(nil, `{"pad":%q}`, strings.Repeat("x", padding))
		rows, at = append(rows, r), append(at, n-1-i)
	}
	return rows, at
}

// pieced is a row whose payload is to be sent in another order, and that payload.
func pieced(t *rapid.T) (pipeline.Row, string) {
	r := madeUp.row(time.Unix(0, 0), 0)
	var raw []byte
	var pieces []decision.Piece
	for i := range rapid.IntRange(1, 6).Draw(t, "members") {
		from := len(raw)
		raw = fmt.Appendf(raw, `"k%d":%q`, i, strings.Repeat("v", rapid.IntRange(0, 200).Draw(t, "value")))
		pieces = append(pieces, decision.NewPiece(from, len(raw), rapid.Bool().Draw(t, "comma")))
	}
	r.Log.Raw, r.Log.Pieces = raw, rapid.Permutation(pieces).Draw(t, "order")
	var sent []byte
	for _, p := range r.Log.Pieces {
		stretch, comma := p.Of(raw)
		if comma {
			sent = append(sent, ',')
		}
		sent = append(sent, stretch...)
	}
	return r, string(sent)
}

// However much is asked for at a time, the same bytes come.
func TestCopyReader_AnyBuffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows, at := someRows(rapid.IntRange(0, 5).Draw(t, "rows"), rapid.IntRange(0, 300).Draw(t, "padding"))
		payloads := make([]string, len(rows))
		for i := range rows {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				rows[i].Log = &decision.Log{ID: "x", Time: time.Unix(0, 0)}
			case 1:
				rows[i], payloads[i] = pieced(t)
			default:
				payloads[i] = string(rows[i].Log.Raw)
			}
			rows[i].UploadedBy = strings.Repeat("c", rapid.IntRange(0, 300).Draw(t, "uploader"))
		}
		var want []byte
		for reader, b := newCopyReader(rows, at), make([]byte, 1); ; { // in which no row has room
			if _, err := reader.Read(b); err != nil {
				break
			}
			want = append(want, b...)
		}
		reader := newCopyReader(rows, at)
		var got []byte
		for {
			buf := make([]byte, rapid.OneOf(rapid.IntRange(1, 400), rapid.IntRange(400, 5000), rapid.Just(64<<10)).Draw(t, "size"))
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
			t.Fatalf("%d bytes in pieces are not the %d one by one", len(got), len(want))
		}
		fields := fieldsOf(t, want)
		if len(fields) != len(rows)*copyColumns {
			t.Fatalf("%d fields in %d rows", len(fields), len(rows))
		}
		for k, i := range at {
			sent := fields[k*copyColumns+11]
			if payloads[i] == "" && sent != "" || payloads[i] != "" && sent != "\x01"+payloads[i] {
				t.Fatalf("row %d: sent %q of %q", i, sent, payloads[i])
			}
			if sum := sha256.Sum256(rows[i].Log.Raw); fields[k*copyColumns+16] != string(sum[:]) {
				t.Fatalf("row %d: another hash than that of its bytes", i)
			}
			if fields[k*copyColumns+19] != rows[i].UploadedBy {
				t.Fatalf("row %d: uploaded by %q, not %q", i, fields[k*copyColumns+19], rows[i].UploadedBy)
			}
		}
	})
}

// Whole is what nearly every row is, and only what is sure to have room.
func TestWholeRow_OnlyWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, _ := pieced(t)
		if rapid.Bool().Draw(t, "overlapping") {
			r.Log.Pieces = append(r.Log.Pieces, r.Log.Pieces...)
		}
		size := rapid.IntRange(0, 3000).Draw(t, "room")
		buf := bytes.Repeat([]byte{'!'}, 3100)
		n, fits := wholeRow(buf[:size], &r)
		if fits && n > size || !bytes.Equal(buf[size:], bytes.Repeat([]byte{'!'}, 3100-size)) {
			t.Fatalf("%d bytes in a room of %d", n, size)
		}
		if !fits && size > 2*(fixed+len(r.Log.Raw)+400) {
			t.Fatalf("a room of %d is not used", size)
		}
	})
}

// fieldsOf walks through a file of COPY by its lengths alone.
func fieldsOf(t *rapid.T, b []byte) (fields []string) {
	b = b[len(signature)+8:]
	for {
		columns := int16(binary.BigEndian.Uint16(b))
		b = b[2:]
		if columns == trailer {
			if len(b) > 0 {
				t.Fatalf("%d bytes behind the end", len(b))
			}
			return fields
		}
		for range columns {
			size := max(int32(binary.BigEndian.Uint32(b)), 0)
			fields = append(fields, string(b[4:4+size]))
			b = b[4+size:]
		}
	}
}

func TestCopyReader_AllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts what the whole process allocates
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

func TestCopyLine_InAnyLanguage(t *testing.T) {
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
		pg := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "23514"}
		pg.Where = fmt.Sprintf("COPY decision_logs, line %d", line)
		s, _ := db.AsServerError(db.Clean("act", located(pg, at)))
		if row, ok := s.Row(); ok != (want >= 0) || ok && row != want {
			t.Errorf("line %d is row %d (%v), want %d", line, row, ok, want)
		}
	}
}

func TestMemory_Bounded(t *testing.T) {
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

func TestCompare_BoundedInBytes(t *testing.T) {
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

func BenchmarkCopyRows(b *testing.B) {
	rows, at := someRows(5000, 640)
	buf := make([]byte, 64<<10-messageHead)
	b.ReportAllocs()
	for b.Loop() {
		for reader := newCopyReader(rows, at); ; {
			if _, err := reader.Read(buf); err != nil {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rows)), "ns/row")
}

// BenchmarkCopyRows_Apart has rows in an order that is not that of memory, as in a batch that is sorted by random ids. They are
// more than the caches near a core hold.
func BenchmarkCopyRows_Apart(b *testing.B) {
	const batches = 8
	var all [batches]*copyReader
	for i := range all {
		rows, at := someRows(5000, 640)
		rand.New(rand.NewPCG(1, uint64(i))).Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
		all[i] = newCopyReader(rows, at)
	}
	buf := make([]byte, 64<<10-messageHead)
	for b.Loop() {
		for _, r := range all {
			for reader := newCopyReader(r.rows, r.at); ; {
				if _, err := reader.Read(buf); err != nil {
					break
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batches*5000), "ns/row")
}
