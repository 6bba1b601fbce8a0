package historydb

import (
	"encoding/binary"
	"io"
	"time"

	"docket/internal/history/state"
)

// copying is rows in the binary form of COPY. A row is encoded when it is asked for, so that many take little memory.
type copying struct {
	row  func(c *copying, i int)
	n    int    // rows in all
	next int    // -1: the header; n: the trailer
	text []byte // encoded and not sent
	sent int    // bytes of text
}

// newCopying makes a reader of n rows. row writes all columns of one.
func newCopying(n int, row func(c *copying, i int)) *copying {
	return &copying{row: row, n: n, next: -1}
}

// Read is of [io.Reader].
func (c *copying) Read(p []byte) (int, error) {
	if c.sent == len(c.text) {
		c.text, c.sent = c.text[:0], 0
		for ; c.next <= c.n && len(c.text) < len(p); c.next++ {
			switch c.next {
			case -1:
				c.text = append(c.text, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
			case c.n:
				c.text = append(c.text, 0xff, 0xff)
			default:
				c.row(c, c.next)
			}
		}
		if len(c.text) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, c.text[c.sent:])
	c.sent += n
	return n, nil
}

func (c *copying) columns(n uint16) { c.text = binary.BigEndian.AppendUint16(c.text, n) }

func (c *copying) nulls(n int) {
	for range n {
		c.text = append(c.text, 0xff, 0xff, 0xff, 0xff)
	}
}

func (c *copying) length(n int) {
	c.text = binary.BigEndian.AppendUint32(c.text, uint32(n)) //nolint:gosec // a column is shorter
}

func (c *copying) texts(all ...string) {
	for _, s := range all {
		c.length(len(s))
		c.text = append(c.text, s...)
	}
}

func (c *copying) bytes(b []byte) {
	c.length(len(b))
	c.text = append(c.text, b...)
}

func (c *copying) number(n int64) {
	c.length(8)
	c.text = binary.BigEndian.AppendUint64(c.text, uint64(n)) //nolint:gosec // its bits
}

// time writes a timestamp, in microseconds since the beginning of the server's time.
func (c *copying) time(t time.Time) { c.number(t.UnixMicro() - sinceUnix*1_000_000) }

func (c *copying) version(v state.Version) {
	c.time(v.Time)
	c.texts(v.ID)
}

func (c *copying) truth(b bool) {
	c.length(1)
	if b {
		c.text = append(c.text, 1)
	} else {
		c.text = append(c.text, 0)
	}
}
