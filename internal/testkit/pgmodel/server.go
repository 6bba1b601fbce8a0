package pgmodel

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const tableName = "decision_logs"

// Config holds the settings of a server; the zero value is a healthy one.
type Config struct {
	// Unknown is called with a statement, or another message, that the model does not know. A test should then fail.
	// It must not call the server.
	Unknown func(sql string)
	// MaxMessage limits a message in bytes. Default 64 MiB; longer ones end the session.
	MaxMessage int
	// Encoding is the default client_encoding; empty: UTF8. Any other is read as LATIN1.
	Encoding string
	// Pooled is a server behind a pooler that drops client_encoding.
	Pooled bool
}

// Server is the model of one server with one database. It is safe for concurrent use.
type Server struct {
	cfg Config

	mu        sync.Mutex
	rows      map[key]*tuple
	committed []*tuple // in the order of their commits
	commits   int64
	sessions  []*session // in the order of their backend ids
	lastPID   uint32
	closed    bool
	stopped   time.Time // refuses connections before this
	starting  time.Time // says that it is starting before this
	readOnly  int
	full      int
	noCopy    int
	doubles   int // there is no unique index
	short     int // of transaction ids
	faults    []*fault
	refusals  []*refusal
	removals  []*func(Row) bool
	checks    []*Constraint
	alters    []func(*Row) bool
	locks     []chan struct{}
	hung      []chan struct{}
	standby   []chan struct{} // the synchronous standby is away until they are closed
	cancels   int             // cancel requests are lost
	unknown   []string
	observers []func(Event)
	wait      sync.WaitGroup
}

// New starts a server with an empty table.
func New(cfg Config) *Server {
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = 64 << 20
	}
	cfg.Encoding = cmp.Or(cfg.Encoding, "UTF8")
	return &Server{cfg: cfg, rows: map[key]*tuple{}, lastPID: 100}
}

// Dial connects, like [net.Dialer.DialContext]. Every address is this server's. The port of the local address is the
// id of the backend, so that the caller can find its sessions.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := s.dialled(ctx); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || time.Now().Before(s.stopped) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: syscall.ECONNREFUSED}
	}
	s.lastPID++
	client, server := newWire(addr("client:"+strconv.FormatUint(uint64(s.lastPID), 10)), addr(address))
	b := newSession(s, s.lastPID, server)
	s.sessions = append(s.sessions, b)
	s.wait.Go(b.serve)
	return client, nil
}

// dialled applies the faults at Connect without a code; one with a code answers the startup message.
func (s *Server) dialled(ctx context.Context) error {
	s.mu.Lock()
	var now []Fault
	for _, f := range s.faults {
		if f.SQLSTATE == "" && f.due(Connect, nil) {
			now = append(now, f.Fault)
		}
	}
	s.sweep()
	s.mu.Unlock()
	for _, f := range now {
		if f.Delay > 0 {
			timer := time.NewTimer(f.Delay)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
		}
		if f.Cut {
			s.tell(Event{Point: Connect})
			return syscall.ECONNREFUSED
		}
	}
	return ctx.Err()
}

// Restart does a fast shutdown and a start. Every session gets 57P01, and open transactions roll back. Connections
// are refused for the first half of down. In the second half the server answers that it is starting (57P03).
func (s *Server) Restart(down time.Duration) { s.stop(down, terminate) }

// Crash is Restart without answers: connections break. Committed rows stay.
func (s *Server) Crash(down time.Duration) { s.stop(down, vanish) }

func (s *Server) stop(down time.Duration, how signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.stopped, s.starting = now.Add(down/2), now.Add(down)
	for _, b := range s.sessions {
		b.interrupt(how)
	}
}

// Kill ends the open sessions, each with 57P01, and returns their number. New ones are accepted.
func (s *Server) Kill() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.sessions {
		b.interrupt(terminate)
	}
	return len(s.sessions)
}

// Cancel cancels the running statements, like an administrator. The sessions stay.
func (s *Server) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.sessions {
		b.interrupt(cancel)
	}
}

// Close ends every session without an answer, waits for them and refuses new connections.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for _, b := range s.sessions {
		b.interrupt(vanish)
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// Rows returns the committed rows in the order of their commits, those of one transaction in the order of their
// insert.
func (s *Server) Rows() []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]Row, len(s.committed))
	for i, t := range s.committed {
		rows[i] = t.Row
	}
	return rows
}

// Commits returns the number of the last transaction that stored rows; its rows have it in [Row.Commit].
func (s *Server) Commits() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// Unconfirmed returns the committed rows that the standby does not have: a promotion would lose them.
func (s *Server) Unconfirmed() (rows []Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.committed {
		if t.alone {
			rows = append(rows, t.Row)
		}
	}
	return rows
}

// Put stores rows like another client, without an event. It replaces a row with the same identity.
func (s *Server) Put(rows ...Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	for _, r := range rows {
		r.Time = fromMicros(toMicros(r.Time))
		r.Commit, r.At, r.Session = s.commits, time.Now(), 0
		if r.StoredAt.IsZero() {
			r.StoredAt = r.At
		}
		t := &tuple{Row: r}
		s.remove(t.key())
		s.rows[t.key()] = t
		s.committed = append(s.committed, t)
	}
}

// Delete removes a committed row like another client, and reports whether it was there.
func (s *Server) Delete(id string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(key{id, toMicros(at)})
}

func (s *Server) remove(k key) bool {
	t := s.rows[k]
	if t == nil || t.owner != nil {
		return false
	}
	delete(s.rows, k)
	s.committed = slices.DeleteFunc(s.committed, func(o *tuple) bool { return o == t })
	return true
}

// Sessions returns the number of connections.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Unknown lists the messages of clients that the model does not know.
func (s *Server) Unknown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.unknown)
}

// stranger notes an unknown message. s.mu is not held.
func (s *Server) stranger(what string) {
	s.mu.Lock()
	s.unknown = append(s.unknown, what)
	s.mu.Unlock()
	if s.cfg.Unknown != nil {
		s.cfg.Unknown(what)
	}
}

// Event is an event of a session.
type Event struct {
	Time    time.Time
	Session uint32 // backend id; 0 at Connect
	Point   Point
	// SQLSTATE is the code of the answer; empty for success, and if the connection was cut.
	SQLSTATE string
	Cut      bool
	// Copied says, at Insert and InsertAnswered, that it was a COPY.
	Copied bool
	// Rows are those of the statement, at Commit those of the transaction.
	Rows []Row
	// Applied says, at Commit and CommitApplied, that the rows are stored.
	Applied bool
}

// Observe calls f for each event, one at a time, in a possible order. f must not call the server or change the rows.
func (s *Server) Observe(f func(Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observers = append(s.observers, f)
}

func (s *Server) tell(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked(e)
}

func (s *Server) tellLocked(e Event) {
	if len(s.observers) == 0 {
		return
	}
	e.Time = time.Now()
	for _, f := range s.observers {
		f(e)
	}
}
