package pgtest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sessions are those that a harness keeps for its own statements. A new session costs the server more than most
// statements.
type Sessions struct {
	mu   sync.Mutex
	idle []*session
}

type session struct {
	*pgx.Conn
	url   string
	ended bool // the test that opened it is over
}

// With runs f in a session that nobody else has and that is as new. The session ends with the test, at the latest.
func (s *Sessions) With(ctx context.Context, t testing.TB, url string, f func(*pgx.Conn) error) error {
	one := s.take(ctx, url)
	if one == nil {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			return err
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // nothing is prepared that a reset would take away
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		one = &session{Conn: conn, url: url}
		t.Cleanup(func() { s.end(one) })
	}
	err := f(one.Conn)
	// Nothing of it may stay: a setting, a role, a lock, a temporary table.
	if _, reset := one.Exec(ctx, `DISCARD ALL`); reset != nil {
		_ = one.Close(ctx)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.ended {
		_ = one.Close(ctx)
	} else {
		s.idle = append(s.idle, one)
	}
	return err
}

// take returns a session that works, or nil.
func (s *Sessions) take(ctx context.Context, url string) *session {
	for {
		s.mu.Lock()
		i := slices.IndexFunc(s.idle, func(one *session) bool { return one.url == url })
		if i < 0 {
			s.mu.Unlock()
			return nil
		}
		one := s.idle[i]
		s.idle = slices.Delete(s.idle, i, i+1)
		s.mu.Unlock()
		if one.answers(ctx) {
			return one
		}
		_ = one.Close(ctx) // its server is gone
	}
}

// answers reports whether a session still works. Where a server was killed, nothing may ever come back.
func (one *session) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return one.Ping(ctx) == nil
}

// EndSessions ends the sessions that the harness keeps between statements. It is for tests that wait until nobody else
// has a session. It is also for those that read statistics, as a session may keep its own to itself until it ends.
func (db *DB) EndSessions() {
	db.sessions.mu.Lock()
	defer db.sessions.mu.Unlock()
	for _, one := range db.sessions.idle {
		_ = one.Close(context.Background())
	}
	db.sessions.idle = nil
}

// end ends a session, at once or after the statement that has it.
func (s *Sessions) end(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.ended = true
	if i := slices.Index(s.idle, one); i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
		_ = one.Close(context.Background())
	}
}
