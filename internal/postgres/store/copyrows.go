package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"io"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/decision"
)

// copyReader is rows as COPY takes them in binary form. Each is encoded when it is asked for, right into the caller's
// buffer. So a batch of any size takes no memory of its own.
type copyReader struct {
	rows []pipeline.Row
	at   []int // positions in rows, in the order to be sent
	next int   // of at; -1 is the header, len(at) the trailer
	sent int   // bytes of it that were given out
}

func newCopyReader(rows []pipeline.Row, at []int) *copyReader {
	return &copyReader{rows: rows, at: at, next: -1}
}

// Read is of [io.Reader].
func (c *copyReader) Read(p []byte) (int, error) {
	w := window{to: p}
	for c.next <= len(c.at) {
		from := w.n
		w.skip, w.size = c.sent, 0
		switch {
		case c.next < 0:
			w.header()
		case c.next == len(c.at):
			w.int2(trailer)
		default:
			r := &c.rows[c.at[c.next]]
			if c.sent == 0 {
				c.ahead()
				if n, fits := wholeRow(p[w.n:], r); fits {
					w.n += n
					c.next++
					continue
				}
			}
			w.row(r)
		}
		if c.sent += w.n - from; c.sent < w.size {
			return w.n, nil // p is full
		}
		c.next, c.sent = c.next+1, 0
	}
	if w.n > 0 {
		return w.n, nil
	}
	return 0, io.EOF
}

const (
	copyColumns  = 20
	signature    = "PGCOPY\n\xff\r\n\x00"
	trailer      = -1
	jsonbVersion = 1
	jsonbHead    = 5 // its length and its version
)

// window is the part of an encoding that fits into a buffer, from some byte on.
type window struct {
	to   []byte
	n    int // bytes of to that are filled
	skip int // bytes to leave out before the first that is filled in
	size int // bytes of the whole encoding, whether they fit or not
}

func (w *window) bytes(b []byte) {
	w.size += len(b)
	if w.skip >= len(b) {
		w.skip -= len(b)
		return
	}
	w.n += copy(w.to[w.n:], b[w.skip:])
	w.skip = 0
}

func (w *window) string(s string) {
	w.size += len(s)
	if w.skip >= len(s) {
		w.skip -= len(s)
		return
	}
	w.n += copy(w.to[w.n:], s[w.skip:])
	w.skip = 0
}

func (w *window) int2(v int16) {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], uint16(v))
	w.bytes(b[:])
}

func (w *window) int4(v int32) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(v))
	w.bytes(b[:])
}

func (w *window) int8(v int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(v))
	w.bytes(b[:])
}

func (w *window) header() {
	w.string(signature)
	w.int4(0) // flags
	w.int4(0) // length of what may follow here
}

func (w *window) null() { w.int4(-1) }

func (w *window) text(s string) {
	w.int4(int32(len(s)))
	w.string(s)
}

func (w *window) nullText(s sql.Null[string]) {
	if !s.Valid {
		w.null()
		return
	}
	w.text(s.V)
}

// json is a value of jsonb; none is NULL.
func (w *window) json(b []byte) {
	if len(b) == 0 {
		w.null()
		return
	}
	var head [jsonbHead]byte
	binary.BigEndian.PutUint32(head[:], uint32(jsonbHead-4+len(b)))
	head[4] = jsonbVersion
	w.bytes(head[:])
	w.bytes(b)
}

func (w *window) nullBool(b sql.Null[bool]) {
	if !b.Valid {
		w.null()
		return
	}
	v := [5]byte{3: 1}
	if b.V {
		v[4] = 1
	}
	w.bytes(v[:])
}

func (w *window) field4(v int32) {
	w.int4(4)
	w.int4(v)
}

func (w *window) field8(v int64) {
	w.int4(8)
	w.int8(v)
}

// raw is the payload: its pieces in their order, where there are some.
func (w *window) raw(l *decision.Log) {
	if len(l.Pieces) == 0 {
		w.json(l.Raw)
		return
	}
	size := jsonbHead - 4
	for _, p := range l.Pieces {
		stretch, comma := p.Of(l.Raw)
		if size += len(stretch); comma {
			size++
		}
	}
	w.int4(int32(size))
	w.bytes([]byte{jsonbVersion})
	for _, p := range l.Pieces {
		stretch, comma := p.Of(l.Raw)
		if comma {
			w.string(",")
		}
		w.bytes(stretch)
	}
}

// row is one row, its columns in the order of [copySQL].
func (w *window) row(r *pipeline.Row) {
	l := r.Log
	w.int2(copyColumns)
	w.text(l.ID)
	w.field8(micros(l.Time))
	w.nullText(l.Path)
	w.nullBool(l.Allowed)
	w.nullText(l.RequestedBy)
	if l.ReqID.Valid {
		w.field8(l.ReqID.V)
	} else {
		w.null()
	}
	w.nullText(l.OPAID)
	w.nullText(l.OPAVersion)
	w.nullText(l.Service)
	w.json(l.Labels)
	w.json(l.Bundles)
	w.raw(l)
	w.text(r.Topic)
	w.field4(r.Partition)
	w.field8(r.Offset)
	w.field4(int32(r.Index))
	w.int4(sha256.Size)
	sum := l.Sum()
	w.bytes(sum[:])
	w.unfaithful(l.Unfaithful)
	w.nullText(uploader(r))
}

// unfaithful is the bytes that came, and where the payload differs.
func (w *window) unfaithful(u *decision.Unfaithful) {
	if u == nil {
		w.null()
		w.null()
		return
	}
	w.int4(int32(len(u.Bytes)))
	w.bytes(u.Bytes)
	places := newArray(oidText, len(u.Pointers), 0)
	for _, p := range u.Pointers {
		places.text(p)
	}
	w.int4(int32(len(places.bytes())))
	w.bytes(places.bytes())
}
