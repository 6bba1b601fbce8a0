package pgmodel

import "time"

// tuple is a row in the table.
type tuple struct {
	Row
	owner *transaction // the transaction that inserted it and is still open; nil once committed
	alone bool         // the standby does not have it
}

// transaction is a transaction of a session. Its fields are guarded by the server's mutex, except for its limits.
type transaction struct {
	session  *session
	began    time.Time
	implicit bool     // without BEGIN: ends with Sync
	failed   bool     // it accepts only ROLLBACK
	ended    bool     // nothing is left to apply or undo
	usesIt   bool     // holds a lock on the table
	confirms bool     // it wrote something, maybe no rows
	hasID    bool     // of its own, as it wrote something
	durable  bool     // is in the log of this server, and waits for the standby
	alone    bool     // the standby may not have it
	offered  []Row    // that are asked about
	refused  []string // lines of results
	inserted []*tuple
	over     chan struct{} // closed when its locks are gone
	limits   limits
}

// limits are what set_config set, until the transaction's end; 0 is none.
type limits struct{ statement, lock, idle time.Duration }

func newTransaction(s *session) *transaction {
	return &transaction{session: s, began: time.Now(), over: make(chan struct{})}
}

// abort undoes the transaction and releases its locks.
func (s *Server) abort(t *transaction) {
	if t == nil || t.ended {
		return
	}
	if t.durable {
		s.apply(t)
		return
	}
	t.failed, t.ended = true, true
	for _, row := range t.inserted {
		if s.rows[row.key()] == row {
			delete(s.rows, row.key())
		}
	}
	t.inserted, t.limits = nil, limits{}
	close(t.over)
}

// undo removes the rows from this one on, and wakes the sessions that wait for them.
func (s *Server) undo(t *transaction, from int) {
	if t.ended || len(t.inserted) == from {
		return
	}
	for _, row := range t.inserted[from:] {
		if s.rows[row.key()] == row {
			delete(s.rows, row.key())
		}
	}
	t.inserted = t.inserted[:from]
	close(t.over)
	t.over = make(chan struct{})
}

// apply makes the transaction visible and durable.
func (s *Server) apply(t *transaction) {
	if len(t.inserted) > 0 {
		s.commits++
		now := time.Now()
		for _, row := range t.inserted {
			row.owner, row.Commit, row.At, row.alone = nil, s.commits, now, t.alone && len(s.standby) > 0
		}
		s.committed = append(s.committed, t.inserted...)
	}
	t.ended = true
	close(t.over)
}

// rowsOf copies the rows of a transaction.
func (t *transaction) rowsOf() []Row {
	if t == nil {
		return nil
	}
	rows := make([]Row, len(t.inserted))
	for i, r := range t.inserted {
		rows[i] = r.Row
	}
	return rows
}
