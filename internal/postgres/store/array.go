package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// array is a one-dimensional Postgres array in binary form. The driver does not write it. So it takes
// one allocation for a column, needs no statement that the server described before, and cannot refuse a value.
type array struct {
	buf []byte
	n   int
}

const arrayHeader = 20

// newArray begins an array of elements of type oid, with room for n of them that have size bytes in all.
func newArray(oid uint32, n, size int) *array {
	buf := make([]byte, arrayHeader, arrayHeader+4*n+size)
	binary.BigEndian.PutUint32(buf[0:], 1)   // dimensions
	binary.BigEndian.PutUint32(buf[8:], oid) // buf[4:8]: whether there are NULLs, 0 so far
	binary.BigEndian.PutUint32(buf[16:], 1)  // lower bound
	return &array{buf: buf}
}

// bytes is the finished array.
func (a *array) bytes() []byte {
	binary.BigEndian.PutUint32(a.buf[12:], uint32(a.n))
	return a.buf
}

func (a *array) size(n int) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(int32(n)))
}

func (a *array) null() {
	binary.BigEndian.PutUint32(a.buf[4:], 1)
	a.size(-1)
}

func (a *array) text(s string) {
	a.size(len(s))
	a.buf = append(a.buf, s...)
}

func (a *array) nullText(s sql.Null[string]) {
	if !s.Valid {
		a.null()
		return
	}
	a.text(s.V)
}

// json appends JSON text; none is NULL.
func (a *array) json(b []byte) {
	if len(b) == 0 {
		a.null()
		return
	}
	a.size(len(b))
	a.buf = append(a.buf, b...)
}

// hash appends the hash of a payload.
func (a *array) hash(sum [sha256.Size]byte) {
	a.size(len(sum))
	a.buf = append(a.buf, sum[:]...)
}

// jsonb appends JSON text as a value of jsonb; none is NULL.
func (a *array) jsonb(b []byte) {
	if len(b) == 0 {
		a.null()
		return
	}
	a.size(1 + len(b))
	a.buf = append(append(a.buf, jsonbVersion), b...)
}

func (a *array) nullBool(b sql.Null[bool]) {
	switch {
	case !b.Valid:
		a.null()
	case b.V:
		a.size(1)
		a.buf = append(a.buf, 1)
	default:
		a.size(1)
		a.buf = append(a.buf, 0)
	}
}

func (a *array) int4(v int32) {
	a.size(4)
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(v))
}

func (a *array) int8(v int64) {
	a.size(8)
	a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(v))
}

func (a *array) nullInt8(v sql.Null[int64]) {
	if !v.Valid {
		a.null()
		return
	}
	a.int8(v.V)
}

// epoch is where Postgres begins to count, in Unix microseconds: 2000-01-01.
const epoch = 946_684_800_000_000

// micros is a time as timestamptz holds it. Nanoseconds are cut and not rounded, as decision does.
func micros(t time.Time) int64 { return t.Unix()*1e6 + int64(t.Nanosecond())/1e3 - epoch }

const (
	oidBool        = pgtype.BoolOID
	oidInt8        = pgtype.Int8OID
	oidInt4        = pgtype.Int4OID
	oidJSONB       = pgtype.JSONBOID
	oidBytea       = pgtype.ByteaOID
	oidText        = pgtype.TextOID
	oidTimestamptz = pgtype.TimestamptzOID
)
