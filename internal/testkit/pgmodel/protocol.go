package pgmodel

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// portal is a prepared statement with its parameters.
type portal struct {
	*prepared
	params  [][]byte
	formats []int16 // of the parameters
	results []int16 // formats of the answer
	rows    []Row   // that the parameters hold
}

// format of parameter or column i, as Bind says it.
func format(codes []int16, i int) int16 {
	switch {
	case len(codes) == 1:
		return codes[0]
	case i < len(codes):
		return codes[i]
	}
	return 0
}

// handle handles a message, and returns false if the session is over.
func (s *session) handle(m pgproto3.FrontendMessage) bool {
	switch m.(type) {
	case *pgproto3.Terminate:
		return false
	}
	if s.copy != nil {
		return s.inCopy(m)
	}
	switch m.(type) {
	case *pgproto3.Sync:
		return s.sync()
	case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail:
		return true // of a COPY that was refused
	}
	if s.skipping {
		return true
	}
	var f *failure
	switch m := m.(type) {
	case *pgproto3.Parse:
		f = s.parse(m)
	case *pgproto3.Bind:
		f = s.bind(m)
	case *pgproto3.Describe:
		f = s.describe(m)
	case *pgproto3.Execute:
		f = s.executePortal(m)
	case *pgproto3.Close:
		if m.ObjectType == 'S' {
			delete(s.prepared, m.Name)
		} else {
			delete(s.portals, m.Name)
		}
		s.backend.Send(&pgproto3.CloseComplete{})
	case *pgproto3.Flush:
		return s.backend.Flush() == nil
	case *pgproto3.Query:
		return s.simple(m.String)
	default:
		s.server.stranger("a message that the model does not know")
		f = fatal("08P01", "invalid frontend message type")
	}
	return f == nil || s.failed(f)
}

// failed sends a failure, after the answers before it. It returns false if the session ends with it.
func (s *session) failed(f *failure) bool {
	s.server.mu.Lock()
	s.server.abort(s.tx)
	s.server.mu.Unlock()
	s.skipping = true
	if f.silent {
		return false
	}
	s.backend.Send(f.response())
	return s.backend.Flush() == nil && !f.ends()
}

// sync ends an implicit transaction.
func (s *session) sync() bool {
	s.skipping = false
	if s.tx != nil && s.tx.implicit {
		if f := s.commitImplicit(); f != nil {
			again := s.failed(f)
			if s.skipping = false; !again {
				return false
			}
		}
	}
	return s.ready()
}

// commitImplicit skips [Commit] if there is nothing to commit.
func (s *session) commitImplicit() *failure {
	s.server.mu.Lock()
	if len(s.tx.inserted) == 0 {
		defer s.server.mu.Unlock()
		s.server.abort(s.tx)
		s.tx = nil
		return nil
	}
	s.server.mu.Unlock()
	return s.commit()
}

// refusesAll is the answer of a failed transaction to everything except its end.
func (s *session) refusesAll(p *prepared) *failure {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.tx != nil && s.tx.failed && s.pending < terminate && !p.endsTransaction() {
		return fail("25P02", "current transaction is aborted, commands ignored until end of transaction block")
	}
	return nil
}

func (s *session) parse(m *pgproto3.Parse) *failure {
	p, f := s.server.prepare(m.Query)
	if f != nil {
		return f
	}
	if f := s.refusesAll(p); f != nil {
		return f
	}
	if _, ok := p.plan.(*copyPlan); ok {
		s.server.stranger("COPY in the extended protocol")
		return fail("0A000", "the model knows COPY in the simple protocol only")
	}
	if s.prepared == nil {
		s.prepared, s.portals = map[string]*prepared{}, map[string]*portal{}
	}
	if m.Name != "" && s.prepared[m.Name] != nil {
		return fail("42P05", "prepared statement already exists")
	}
	s.prepared[m.Name] = p
	s.backend.Send(&pgproto3.ParseComplete{})
	return nil
}

func (s *session) bind(m *pgproto3.Bind) *failure {
	p := s.prepared[m.PreparedStatement]
	if p == nil {
		return fail("26000", "prepared statement does not exist")
	}
	if f := s.refusesAll(p); f != nil {
		return f
	}
	if len(m.Parameters) != p.params {
		return fail("08P01", "bind message supplies %d parameters, but prepared statement requires %d", len(m.Parameters), p.params)
	}
	size := 0
	for _, v := range m.Parameters {
		size += len(v)
	}
	all, params := make([]byte, 0, size), make([][]byte, len(m.Parameters)) // the next message overwrites the buffer
	for i, v := range m.Parameters {
		if v != nil {
			from := len(all)
			all = append(all, v...)
			params[i] = all[from:len(all):len(all)]
		}
	}
	s.portals[m.DestinationPortal] = &portal{prepared: p, params: params,
		formats: slices.Clone(m.ParameterFormatCodes), results: slices.Clone(m.ResultFormatCodes)}
	s.backend.Send(&pgproto3.BindComplete{})
	return nil
}

func (s *session) describe(m *pgproto3.Describe) *failure {
	if m.ObjectType == 'S' {
		p := s.prepared[m.Name]
		if p == nil {
			return fail("26000", "prepared statement does not exist")
		}
		oids := make([]uint32, p.params)
		for i := range oids {
			oids[i] = p.paramOID(i)
		}
		s.backend.Send(&pgproto3.ParameterDescription{ParameterOIDs: oids})
		s.fields(&portal{prepared: p})
		return nil
	}
	p := s.portals[m.Name]
	if p == nil {
		return fail("34000", "portal does not exist")
	}
	s.fields(p)
	return nil
}

// fields describes the rows of an answer.
func (s *session) fields(p *portal) {
	if len(p.columns) == 0 {
		s.backend.Send(&pgproto3.NoData{})
		return
	}
	d := &pgproto3.RowDescription{}
	for i, c := range p.columns {
		d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte(c.name), DataTypeOID: c.oid, DataTypeSize: c.size,
			TypeModifier: -1, Format: format(p.results, i)})
	}
	s.backend.Send(d)
}

func (s *session) executePortal(m *pgproto3.Execute) *failure {
	p := s.portals[m.Portal]
	if p == nil {
		return fail("34000", "portal does not exist")
	}
	return s.execute(p)
}

// execute runs a statement and sends its answer.
func (s *session) execute(p *portal) *failure {
	if f := s.refusesAll(p.prepared); f != nil {
		return f
	}
	a, f := s.run(p)
	if f != nil {
		return f
	}
	for _, row := range a.rows {
		d := &pgproto3.DataRow{Values: make([][]byte, len(row))}
		for i, v := range row {
			d.Values[i] = encode(v, format(p.results, i))
		}
		s.backend.Send(d)
	}
	s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(a.tag)})
	return nil
}

// simple runs one statement of the simple protocol, without parameters.
func (s *session) simple(sql string) bool {
	if blank(sql) {
		f := s.meet(Ping, nil)
		s.tell(Event{Point: Ping}, f)
		if f != nil {
			ok := s.failed(f)
			s.skipping = false
			return ok && s.ready()
		}
		s.backend.Send(&pgproto3.EmptyQueryResponse{})
		return s.ready()
	}
	p, f := s.server.prepare(strings.TrimSuffix(strings.TrimSpace(sql), ";"))
	if f == nil && p.params > 0 {
		f = fail("42P02", "there is no parameter $1")
	}
	copies := false
	if f == nil {
		if _, copies = p.plan.(*copyPlan); copies {
			f = s.startCopy(p)
		}
	}
	switch {
	case f == nil && copies:
		return true
	case f == nil:
		bound := &portal{prepared: p}
		if len(p.columns) > 0 {
			s.fields(bound)
		}
		f = s.execute(bound)
	}
	if f != nil && !s.failed(f) {
		return false
	}
	return s.sync()
}

// blank reports whether a query has only blanks and comments.
func blank(sql string) bool {
	for line := range strings.Lines(sql) {
		if line = strings.Trim(line, " \t\r\n;"); line != "" && !strings.HasPrefix(line, "--") {
			return false
		}
	}
	return true
}
