package pgmodel

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// signal is a request of another part of the server to a session; later ones win over earlier ones.
type signal uint8

const (
	none signal = iota
	cancel
	victim    // of a deadlock
	terminate // 57P01
	vanish    // the connection breaks without an answer
)

// session is one backend. Its fields belong to its own goroutine, unless noted.
type session struct {
	server  *Server
	pid     uint32
	secret  []byte
	conn    *end
	backend *pgproto3.Backend

	encoding string // client_encoding
	prepared map[string]*prepared
	portals  map[string]*portal
	copy     *copying      // that is under way
	skipping bool          // after an error, until the next Sync
	idle     time.Duration // idle_in_transaction_session_timeout that is running
	deadline time.Time     // of the statement; zero: none

	// The server's mutex guards these.
	tx      *transaction
	running bool // a statement is running, so a cancel request has an effect
	deaf    bool // ignores cancel requests
	syncs   bool // it waits for the standby
	pending signal
	wakes   chan struct{} // has room for one
	blocked *transaction  // the transaction that it waits for
	since   time.Time     // since when
}

func newSession(s *Server, pid uint32, conn *end) *session {
	b := &session{server: s, pid: pid, conn: conn, wakes: make(chan struct{}, 1)}
	b.secret = binary.BigEndian.AppendUint32(nil, pid*2654435761)
	b.backend = pgproto3.NewBackend(conn, conn)
	b.backend.SetMaxBodyLen(s.cfg.MaxMessage)
	return b
}

// interrupt makes the session handle sig as soon as it can. The server's mutex is held. An end of the session rolls
// back at once.
func (s *session) interrupt(sig signal) {
	if sig <= s.pending || sig == cancel && (!s.running || s.deaf) {
		return
	}
	s.pending = sig
	if sig >= terminate {
		s.server.abort(s.tx)
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // ends the wait for its client
	}
	select {
	case s.wakes <- struct{}{}:
	default:
	}
}

// interrupted returns the failure that ends the running statement, if there is one. The server's mutex is held.
func (s *session) interrupted() *failure {
	sig := s.pending
	if sig < terminate {
		s.pending = none
	}
	switch sig {
	case cancel:
		return fail("57014", "canceling statement due to user request")
	case victim:
		return fail("40P01", "deadlock detected")
	case terminate:
		return fatal("57P01", "terminating connection due to administrator command")
	case vanish:
		return cut
	}
	return nil
}

// serve runs the session.
func (s *session) serve() {
	defer s.end()
	if !s.start() {
		return
	}
	for {
		m, err := s.backend.Receive()
		if err != nil {
			s.lost(err)
			return
		}
		if s.idle > 0 {
			s.idleEnds()
		}
		if !s.ungated() || !s.handle(m) {
			return
		}
	}
}

// lost says why the session ended, if there is a special reason.
func (s *session) lost(err error) {
	s.server.mu.Lock()
	f := s.interrupted()
	s.server.mu.Unlock()
	var long *pgproto3.ExceededMaxBodyLenErr
	switch {
	case f != nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		f = fatal("25P03", "terminating connection due to idle-in-transaction timeout")
	case errors.As(err, &long):
		f = fatal("08P01", "invalid message length")
	default:
		return // the client is gone, or uses another protocol
	}
	s.say(f)
}

// say sends a failure at once.
func (s *session) say(f *failure) {
	if !f.silent {
		s.backend.Send(f.response())
		_ = s.backend.Flush()
	}
}

// end removes everything of the session except its commits.
func (s *session) end() {
	_ = s.conn.Close()
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.abort(s.tx)
	s.tx = nil
	s.server.sessions = slices.DeleteFunc(s.server.sessions, func(o *session) bool { return o == s })
}

// start runs the handshake until the session is ready. It returns false if there is no session.
func (s *session) start() bool {
	for {
		m, err := s.backend.ReceiveStartupMessage()
		if err != nil || !s.ungated() {
			s.server.mu.Lock()
			f := s.interrupted()
			s.server.mu.Unlock()
			if f != nil {
				s.say(f)
			}
			return false
		}
		switch m := m.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			if _, err := s.conn.Write([]byte{'N'}); err != nil {
				return false
			}
		case *pgproto3.CancelRequest:
			s.server.cancel(m.ProcessID, m.SecretKey)
			return false
		case *pgproto3.StartupMessage:
			s.encoding = s.server.cfg.Encoding
			if asked := m.Parameters["client_encoding"]; asked != "" && !s.server.cfg.Pooled {
				s.encoding = asked
			}
			return s.admitted()
		}
	}
}

func (s *session) admitted() bool {
	f := s.unready()
	if f == nil {
		f = s.meet(Connect, nil)
	}
	if f == nil {
		f = s.meet(Startup, nil)
	}
	if f != nil {
		if f.severity == "" {
			own := *f // a copy: several sessions may share the failure
			own.severity = severityFatal
			f = &own
		}
		s.tell(Event{Point: Startup}, f)
		s.say(f)
		return false
	}
	s.tell(Event{Point: Startup}, nil)
	s.backend.Send(&pgproto3.AuthenticationOk{})
	for _, p := range [][2]string{{"client_encoding", s.encoding}, {"DateStyle", "ISO, MDY"}, {"integer_datetimes", "on"},
		{"server_encoding", "UTF8"}, {"server_version", "17.6"}, {"standard_conforming_strings", "on"}, {"TimeZone", "UTC"}} {
		s.backend.Send(&pgproto3.ParameterStatus{Name: p[0], Value: p[1]})
	}
	s.backend.Send(&pgproto3.BackendKeyData{ProcessID: s.pid, SecretKey: s.secret})
	return s.ready()
}

func (s *session) unready() *failure {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if time.Now().Before(s.server.starting) {
		return fatal("57P03", "the database system is starting up")
	}
	return s.interrupted()
}

// ready tells the client that the session is ready, with its state.
func (s *session) ready() bool {
	s.server.mu.Lock()
	status := byte('I')
	switch t := s.tx; {
	case t == nil:
	case t.failed:
		status = 'E'
	default:
		status = 'T'
		s.idle = t.limits.idle
	}
	if s.idle > 0 && s.pending < terminate {
		_ = s.conn.SetReadDeadline(time.Now().Add(s.idle))
	}
	s.server.mu.Unlock()
	s.backend.Send(&pgproto3.ReadyForQuery{TxStatus: status})
	return s.backend.Flush() == nil
}

// idleEnds stops the timer of idle_in_transaction_session_timeout.
func (s *session) idleEnds() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.idle = 0
	if s.pending < terminate {
		_ = s.conn.SetReadDeadline(time.Time{})
	}
}

// ungated waits while the server hangs.
func (s *session) ungated() bool {
	for {
		s.server.mu.Lock()
		gone := s.pending >= vanish
		var gate chan struct{}
		if len(s.server.hung) > 0 {
			gate = s.server.hung[0]
		}
		s.server.mu.Unlock()
		if gone {
			return false
		}
		if gate == nil {
			return true
		}
		select {
		case <-gate:
		case <-s.wakes:
		}
	}
}

// cancel handles a cancel request, which has no answer.
func (s *Server) cancel(pid uint32, secret []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancels > 0 {
		return
	}
	for _, b := range s.sessions {
		if b.pid == pid && slices.Equal(b.secret, secret) {
			b.interrupt(cancel)
		}
	}
}

// tell makes an event of a failure.
func (s *session) tell(e Event, f *failure) {
	e.Session = s.pid
	if f != nil {
		e.SQLSTATE, e.Cut = f.code, f.silent
	}
	s.server.tell(e)
}
