package failpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync/atomic"
)

// Dial connects to an address.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

func dialOr(dial Dial) Dial {
	if dial == nil {
		return (&net.Dialer{}).DialContext
	}
	return dial
}

// Postgres puts the points of a transaction around the connections that dial makes; nil is the plain way. Bytes
// sent through TLS are not understood and reach no point.
func (s *Set) Postgres(dial Dial) Dial {
	dial = dialOr(dial)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &pgConn{Conn: conn, set: s, purpose: purposeOf(ctx)}, nil
	}
}

// pgConn reads along what the client says.
type pgConn struct {
	net.Conn
	set     *Set
	purpose purpose

	// Of the goroutine that writes.
	typed     bool // the start-up is over, messages have a type
	blind     bool // the bytes are not understood
	begun     bool // BEGIN was sent, its execution not yet
	inserting bool // an insert was sent, the end of its transaction not yet

	committing atomic.Bool // COMMIT was sent and not answered
}

const (
	startupMajor = 3
	sslRequest   = 80877103
)

// Write sends p in one go, or in two with a point between them.
func (c *pgConn) Write(p []byte) (int, error) {
	sent := 0
	var after []Point
	flush := func(to int) error {
		n, err := c.Conn.Write(p[sent:to])
		sent += n
		return err
	}
	for at := 0; at < len(p) && !c.blind; {
		size := c.measure(p[at:])
		if size == 0 {
			break
		}
		before, later := c.hear(p[at : at+size])
		at += size
		if before != "" { // with everything up to and including this message sent, or all but this one
			end := at
			if before == ProbeOpen {
				end -= size
			}
			if err := flush(end); err != nil {
				return sent, err
			}
			if err := c.trip(before); err != nil {
				return sent, err
			}
		}
		if later != "" {
			after = append(after, later)
		}
	}
	if err := flush(len(p)); err != nil {
		return sent, err
	}
	for _, point := range after {
		if err := c.trip(point); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// measure is the length of the message at the front of p; 0, and deafness from then on, where there is none.
func (c *pgConn) measure(p []byte) int {
	head := 0
	if c.typed {
		head = 1
	}
	if len(p) >= head+4 {
		if n := head + int(binary.BigEndian.Uint32(p[head:])); n >= head+4 && n <= len(p) {
			return n
		}
	}
	c.blind = true // the client always sends messages whole
	return 0
}

// hear says which point a message comes by: on its way, or when all that was sent with it is sent.
func (c *pgConn) hear(m []byte) (onTheWay, sent Point) {
	if !c.typed {
		if code := binary.BigEndian.Uint32(m[4:]); code>>16 == startupMajor {
			c.typed = true
		}
		return "", ""
	}
	sql := statement(m)
	switch {
	case c.purpose == forUpkeep:
	case c.purpose == forProbe:
		if strings.HasPrefix(sql, "SET CONSTRAINTS ALL IMMEDIATE") {
			return ProbeOpen, ""
		}
	case strings.HasPrefix(sql, "BEGIN ISOLATION LEVEL READ COMMITTED"):
		c.begun, c.inserting = true, false
	case m[0] == 'E' && c.begun:
		c.begun = false
		return TxBegun, ""
	case strings.HasPrefix(sql, "INSERT INTO DECISION_LOGS"):
		c.inserting = true
		return "", RowsSent
	case strings.HasPrefix(sql, "COPY DECISION_LOGS"):
		c.inserting = true
	case c.inserting && m[0] == 'c': // the end of its rows
		return "", RowsSent
	case c.inserting && strings.HasPrefix(sql, "COMMIT"):
		c.inserting = false
		c.committing.Store(true)
		return "", CommitSent
	case strings.HasPrefix(sql, "ROLLBACK"):
		c.inserting = false
	}
	return "", ""
}

func (c *pgConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.committing.Load() && bytes.Contains(p[:n], []byte("COMMIT\x00")) {
		c.committing.Store(false)
		if err := c.trip(CommitAcked); err != nil {
			return 0, err
		}
	}
	return n, err
}

// trip reaches a point; where that is to fail, the connection breaks.
func (c *pgConn) trip(p Point) error {
	err := c.set.reach(p, broken)
	if err != nil {
		_ = c.Close()
	}
	return err
}

// statement is the beginning of the SQL of a Parse or Query message, in capitals and without leading blanks.
func statement(m []byte) string {
	var sql []byte
	switch m[0] {
	case 'P':
		_, sql, _ = bytes.Cut(m[5:], []byte{0})
	case 'Q':
		sql = m[5:]
	}
	sql = bytes.TrimSpace(sql)
	return strings.ToUpper(string(sql[:min(len(sql), 64)]))
}
