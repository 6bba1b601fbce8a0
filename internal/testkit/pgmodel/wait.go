package pgmodel

import "time"

// deadlockTimeout is how long a session waits for a row before it looks for a deadlock.
const deadlockTimeout = time.Second

// meet applies the faults at a point. A returned failure ends the statement.
func (s *session) meet(p Point, rows []Row) *failure {
	s.server.mu.Lock()
	quiet := len(s.server.faults) == 0
	s.server.mu.Unlock()
	if quiet {
		return nil
	}
	return s.strike(s.server.due(p, rows), p, rows)
}

// strike applies faults, until one ends the statement.
func (s *session) strike(faults []Fault, p Point, rows []Row) *failure {
	for _, f := range faults {
		if f.LivesOn {
			s.deafen(true)
			if f.Cut {
				_ = s.conn.Close()
			}
		}
		if f.Delay > 0 {
			if x := s.pause(f.Delay); x != nil {
				return x
			}
		}
		switch {
		case f.Cut && !f.LivesOn:
			return cut
		case f.SQLSTATE != "":
			return f.failure(p, rows)
		}
	}
	return nil
}

func (s *session) deafen(to bool) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.deaf = to
}

// pause is a statement that takes d.
func (s *session) pause(d time.Duration) *failure {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		if f, again := s.waitFor(nil, timer.C, nil); f != nil || !again {
			return f
		}
	}
}

// waitFor waits for done, for elapsed, or for a signal that ends the statement. again reports a wake-up without a
// reason.
func (s *session) waitFor(done <-chan struct{}, elapsed, lock <-chan time.Time) (f *failure, again bool) {
	s.server.mu.Lock()
	f = s.interrupted() // a signal may have come before the wait
	s.server.mu.Unlock()
	if f != nil {
		return f, false
	}
	var limit <-chan time.Time
	if !s.deadline.IsZero() {
		timer := time.NewTimer(time.Until(s.deadline))
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-done:
		return nil, false
	case <-elapsed:
		return nil, false
	case <-s.wakes:
		return nil, true
	case <-limit:
		return fail("57014", "canceling statement due to statement timeout"), false
	case <-lock:
		return fail("55P03", "canceling statement due to lock timeout"), false
	}
}

// awaitLock waits until done is closed, for lock_timeout at most. other is the transaction that holds the row. It is
// nil for a lock on the table.
func (s *session) awaitLock(done <-chan struct{}, other *transaction) *failure {
	var lock <-chan time.Time
	if d := s.limits().lock; d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		lock = timer.C
	}
	s.blocks(other)
	defer s.blocks(nil)
	var look <-chan time.Time
	if other != nil {
		timer := time.NewTimer(deadlockTimeout)
		defer timer.Stop()
		look = timer.C
	}
	for {
		f, again := s.waitFor(done, look, lock)
		switch {
		case f != nil:
			return f
		case again:
			continue
		}
		select {
		case <-done:
			return nil
		default: // time for the check
			look = nil
			s.server.breakDeadlock(s)
		}
	}
}

func (s *session) blocks(on *transaction) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.blocked, s.since = on, time.Now()
}

// breakDeadlock ends the statement that joined last the circle of sessions in which s waits, if there is one.
func (s *Server) breakDeadlock(b *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := b
	for next, left := b, len(s.sessions); left > 0; left-- {
		if next.blocked == nil || next.blocked.ended {
			return
		}
		if next = next.blocked.session; next == b {
			last.interrupt(victim)
			return
		}
		if next.since.After(last.since) || next.since.Equal(last.since) && next.pid > last.pid {
			last = next
		}
	}
}

// limits returns the present limits.
func (s *session) limits() limits {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.tx == nil {
		return limits{}
	}
	return s.tx.limits
}
