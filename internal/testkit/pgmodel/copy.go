package pgmodel

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// copyPlan is a COPY ... FROM STDIN in binary form that was read.
type copyPlan struct{ columns []string }

func readCopy(captured []string) (any, []uint32, error) {
	plan := &copyPlan{list(captured[0])}
	for _, name := range plan.columns {
		if setters[name].set == nil {
			return nil, nil, fmt.Errorf("%w: %s", errOther, name)
		}
	}
	return plan, nil, nil
}

// copying is a COPY that is under way.
type copying struct {
	*copyPlan
	buf      []byte // came and was not read
	started  bool   // the header was read
	over     bool   // the trailer was
	rows     []Row
	lost     int             // rows that a trigger swallowed
	noticed  map[*fault]bool // faults for which this statement was counted
	triggers []*refusal
	checks   []*Constraint
	full     bool
}

const copySignature = "PGCOPY\n\xff\r\n\x00"

// startCopy says that rows may come.
func (s *session) startCopy(p *prepared) *failure {
	if f := s.refusesAll(p); f != nil {
		return f
	}
	s.begins(&portal{prepared: p})
	f := s.usesTable()
	s.server.mu.Lock()
	c := &copying{copyPlan: p.plan.(*copyPlan), triggers: s.server.refusals, checks: s.server.checks, full: s.server.full > 0, noticed: map[*fault]bool{}}
	readOnly, refused := s.server.readOnly > 0, s.server.noCopy > 0
	s.server.mu.Unlock()
	switch {
	case f != nil:
	case refused:
		f = fail("0A000", "COPY FROM not supported with row-level security")
	case readOnly:
		f = fail("25006", "cannot execute COPY FROM in a read-only transaction")
	default:
		s.copy = c
		s.backend.Send(&pgproto3.CopyInResponse{OverallFormat: 1, ColumnFormatCodes: slices.Repeat([]uint16{1}, len(c.columns))})
		if s.backend.Flush() != nil {
			return cut
		}
		return nil
	}
	return s.endCopy(nil, f)
}

// endCopy tells what became of a COPY.
func (s *session) endCopy(rows []Row, f *failure) *failure {
	s.copy = nil
	s.rests()
	s.tell(Event{Point: Insert, Rows: rows, Copied: true}, f)
	return f
}

// inCopy takes a message while a COPY is under way, and returns false where the session is over.
func (s *session) inCopy(m pgproto3.FrontendMessage) bool {
	c := s.copy
	var f *failure
	switch m := m.(type) {
	case *pgproto3.CopyData:
		f = s.copyData(c, m.Data)
	case *pgproto3.CopyDone:
		if f = s.copyDone(c); f == nil {
			s.backend.Send(&pgproto3.CommandComplete{CommandTag: fmt.Appendf(nil, "COPY %d", len(c.rows)-c.lost)})
			return s.sync()
		}
	case *pgproto3.CopyFail:
		f = fail("57014", "COPY from stdin failed: %s", m.Message)
	case *pgproto3.Flush, *pgproto3.Sync:
		return true
	default:
		f = fail("08P01", "unexpected message type during COPY from stdin")
	}
	if f == nil {
		return true
	}
	if s.copy != nil { // a copy that was done told for itself
		s.endCopy(c.rows, f)
	}
	return s.failed(f) && s.sync()
}

func (s *session) copyDone(c *copying) *failure {
	f := s.late()
	switch {
	case f != nil:
	case !c.started:
		f = fail("22P04", "COPY file signature not recognized")
	case len(c.buf) > 0:
		f = c.at(len(c.rows)+1, fail("22P04", "unexpected EOF in COPY data"))
	case len(c.rows) == 0:
		f = s.strike(s.server.dueInCopy(c, nil), Insert, nil)
	}
	if f == nil {
		if f = s.meet(InsertAnswered, c.rows); f != nil {
			s.copy = nil
			s.rests()
			s.tell(Event{Point: InsertAnswered, Rows: c.rows, Copied: true}, f)
			return f
		}
	}
	return s.endCopy(c.rows, f)
}

// late is what a limit or a signal does to a COPY that waited for its client: it does not end the wait.
func (s *session) late() *failure {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return f
	}
	if !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		return fail("57014", "canceling statement due to statement timeout")
	}
	return nil
}

// copyData takes what came, in whatever pieces.
func (s *session) copyData(c *copying, data []byte) *failure {
	if f := s.late(); f != nil {
		return f
	}
	c.buf = append(c.buf, data...)
	if !c.started {
		n, f := copyHeader(c.buf)
		if n == 0 || f != nil {
			return f
		}
		c.started, c.buf = true, c.buf[n:]
	}
	for {
		line := len(c.rows) + 1
		if c.over && len(c.buf) > 0 {
			return c.at(line, fail("22P04", "received copy data after EOF marker"))
		}
		row, n, f := c.tuple()
		if f != nil {
			return c.at(line, f)
		}
		if n == 0 {
			break
		}
		c.buf = c.buf[n:]
		if c.over {
			continue
		}
		row.Session = s.pid
		c.rows = append(c.rows, row)
		if f := s.copyRow(c, &c.rows[line-1]); f != nil {
			c.rest(s.pid)
			return c.at(line, f)
		}
	}
	if len(c.rows) > 0 {
		return s.meet(Copying, c.rows)
	}
	return nil
}

// copyRow inserts one row.
func (s *session) copyRow(c *copying, r *Row) *failure {
	for _, b := range [][]byte{r.Labels, r.Bundles, r.Raw} { // all that reading the columns finds comes first
		if b == nil {
			continue
		}
		if f := checkJSON(b); f != nil {
			return f
		}
	}
	if f := s.strike(s.server.dueInCopy(c, r), Insert, []Row{*r}); f != nil {
		return f
	}
	if r = s.server.altered(r); r == nil {
		c.lost++
		return nil
	}
	if f := acceptable(r, c.triggers, c.checks); f != nil {
		return f
	}
	if c.full {
		return fail("53100", "could not extend file \"base/5/16385\": No space left on device")
	}
	isNew, f := s.put(r)
	if f == nil && !isNew {
		f = doubled(r)
	}
	return f
}

// rest reads the rows behind the refused one, so that observers know them.
func (c *copying) rest(pid uint32) {
	for !c.over {
		row, n, f := c.tuple()
		if f != nil || n == 0 || c.over {
			return
		}
		row.Session = pid
		c.rows, c.buf = append(c.rows, row), c.buf[n:]
	}
}

// at adds where in the COPY it was.
func (c *copying) at(line int, f *failure) *failure {
	if f == cut {
		return f
	}
	located := *f
	located.where = fmt.Sprintf("COPY %s, line %d", tableName, line)
	return &located
}

// copyHeader is how long the header is, 0 where not all of it came.
func copyHeader(b []byte) (int, *failure) {
	n := min(len(b), len(copySignature))
	if string(b[:n]) != copySignature[:n] {
		return 0, fail("22P04", "COPY file signature not recognized")
	}
	const fixed = len(copySignature) + 8
	if len(b) < fixed {
		return 0, nil
	}
	if flags := binary.BigEndian.Uint32(b[len(copySignature):]); flags != 0 {
		return 0, fail("22P04", "unrecognized critical flags in COPY file header")
	}
	more := int32(binary.BigEndian.Uint32(b[len(copySignature)+4:]))
	if more < 0 {
		return 0, fail("22P04", "invalid COPY file header (missing length)")
	}
	if len(b) < fixed+int(more) {
		return 0, nil
	}
	return fixed + int(more), nil
}

// tuple reads the row at the front of the buffer and gives its length, 0 where not all of it came.
func (c *copying) tuple() (r Row, n int, f *failure) {
	b := c.buf
	if len(b) < 2 {
		return r, 0, nil
	}
	fields := int16(binary.BigEndian.Uint16(b))
	if fields == -1 {
		c.over = true
		return r, 2, nil
	}
	if int(fields) != len(c.columns) {
		return r, 0, fail("22P04", "row field count is %d, expected %d", fields, len(c.columns))
	}
	n = 2
	var values [][]byte
	for range c.columns {
		if len(b) < n+4 {
			return r, 0, nil
		}
		size := int(int32(binary.BigEndian.Uint32(b[n:])))
		n += 4
		if size == -1 {
			values = append(values, nil)
			continue
		}
		if size < 0 {
			return r, 0, fail("22P04", "invalid field size")
		}
		if len(b) < n+size {
			return r, 0, nil
		}
		values = append(values, b[n:n+size])
		n += size
	}
	for i, name := range c.columns {
		v, f := binaryField(name, values[i])
		if f != nil {
			return r, 0, f
		}
		setters[name].set(&r, v)
	}
	return r, n, inRange(r.ts)
}

// binaryField checks one value as its type's receive function does, and gives what is kept of it.
func binaryField(name string, v []byte) ([]byte, *failure) {
	c := setters[name]
	if v == nil {
		return nil, nil
	}
	if want := fixedSize[c.oid]; want != 0 && len(v) != want {
		return nil, fail("22P03", "incorrect binary data format")
	}
	if c.json {
		if len(v) == 0 {
			return nil, fail("08P01", "no data left in message")
		}
		if v[0] != 1 {
			return nil, fail("XX000", "unsupported jsonb version number %d", v[0])
		}
		v = v[1:]
	}
	if c.oid == pgtype.TextOID && name != "unfaithful" { // which is an array
		if f := checkText(v); f != nil {
			return nil, f
		}
	}
	return append(make([]byte, 0, len(v)), v...), nil
}

// dueInCopy gives the faults at Insert that strike now that this row came, or none at all. A statement counts once.
func (s *Server) dueInCopy(c *copying, r *Row) []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var now []Fault
	for _, f := range s.faults {
		switch {
		case c.noticed[f], len(c.rows) < f.MinRows:
			continue
		case f.Row == nil || r != nil && f.Row(*r):
		case f.MinRows == 0 || !anyRow(c.rows, f.Row):
			continue
		}
		if f.due(Insert, c.rows) {
			now = append(now, f.Fault)
		}
		c.noticed[f] = true
	}
	if now != nil {
		s.sweep()
	}
	return now
}
