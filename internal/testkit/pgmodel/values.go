package pgmodel

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// array is a decoded one-dimensional array; a nil element is NULL.
type array struct {
	oid   uint32
	elems [][]byte
}

func (a array) at(i int) []byte {
	if i < len(a.elems) {
		return a.elems[i]
	}
	return nil // unnest fills up with NULL
}

var arrayTypes = map[string]uint32{
	"text": pgtype.TextOID, "timestamptz": pgtype.TimestamptzOID, "bool": pgtype.BoolOID, "int8": pgtype.Int8OID, "int4": pgtype.Int4OID,
	"jsonb": pgtype.JSONBOID, "bytea": pgtype.ByteaOID,
}

// fixedSize is the size of values of a type, 0 where it varies.
var fixedSize = map[uint32]int{pgtype.TimestamptzOID: 8, pgtype.BoolOID: 1, pgtype.Int8OID: 8, pgtype.Int4OID: 4}

// decodeArray reads an array in binary form that a statement casts to elements of type oid.
func decodeArray(b []byte, oid uint32) (array, *failure) {
	a := array{oid: oid}
	bad := fail("22P03", "incorrect binary data format in bind parameter")
	if len(b) < 12 {
		return a, fail("08P01", "insufficient data left in message")
	}
	dimensions, elem := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[8:])
	if elem != oid {
		return a, fail("42804", "binary data has array element type %d instead of expected %d", elem, oid)
	}
	if dimensions == 0 {
		return a, nil
	}
	if dimensions != 1 || len(b) < 20 {
		return a, bad
	}
	n := int32(binary.BigEndian.Uint32(b[12:]))
	b = b[20:]
	if n < 0 || int(n) > len(b)/4 {
		return a, bad
	}
	a.elems = make([][]byte, n)
	for i := range a.elems {
		if len(b) < 4 {
			return a, bad
		}
		size := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if size == -1 {
			continue
		}
		if size < 0 || int(size) > len(b) {
			return a, bad
		}
		if want := fixedSize[oid]; want != 0 && int(size) != want {
			return a, bad
		}
		a.elems[i] = b[:size:size]
		if oid == pgtype.JSONBOID {
			if size == 0 || b[0] != 1 {
				return a, bad
			}
			a.elems[i] = b[1:size:size]
		}
		if oid == pgtype.TextOID {
			if f := checkText(a.elems[i]); f != nil {
				return a, f
			}
		}
		b = b[size:]
	}
	if len(b) > 0 {
		return a, bad
	}
	return a, nil
}

func checkText(b []byte) *failure {
	if bytes.IndexByte(b, 0) >= 0 {
		return fail("22021", `invalid byte sequence for encoding "UTF8": 0x00`)
	}
	if !utf8.Valid(b) {
		return fail("22021", `invalid byte sequence for encoding "UTF8"`)
	}
	return nil
}

// The range of timestamptz: 4713 BC to 294276.
const (
	minMicros = -211_813_488_000_000_000
	maxMicros = 9_223_371_331_200_000_000
)

func inRange(ts int64) *failure {
	if ts < minMicros || ts >= maxMicros {
		return fail("22008", "timestamp out of range")
	}
	return nil
}

// value is one field of an answer.
type value any

// encode gives a value in the format that the client asked for: 0 is text, 1 is binary.
func encode(v value, format int16) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return []byte(v)
	case bool:
		switch {
		case format == 0 && v:
			return []byte{'t'}
		case format == 0:
			return []byte{'f'}
		case v:
			return []byte{1}
		}
		return []byte{0}
	case int64:
		if format == 0 {
			return strconv.AppendInt(nil, v, 10)
		}
		return binary.BigEndian.AppendUint64(nil, uint64(v))
	case int32:
		if format == 0 {
			return strconv.AppendInt(nil, int64(v), 10)
		}
		return binary.BigEndian.AppendUint32(nil, uint32(v))
	case []int64: // in binary form alone
		b := binary.BigEndian.AppendUint32(nil, 1)
		for _, n := range []uint32{0, pgtype.Int8OID, uint32(len(v)), 1} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		for _, n := range v {
			b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(n))
		}
		return b
	case time.Time:
		if format == 0 {
			return v.UTC().AppendFormat(nil, "2006-01-02 15:04:05.999999+00")
		}
		return binary.BigEndian.AppendUint64(nil, uint64(toMicros(v)))
	}
	return nil
}
