package pgmodel

import (
	"slices"
	"time"
)

// Point is a moment in a session at which a fault can strike.
type Point string

// The points. Those before an effect differ from those after it: a fault at [Commit] leaves nothing stored, one at
// [CommitApplied] leaves everything stored.
const (
	Connect        Point = "connect"         // dialling: without a code the connection is refused
	Startup        Point = "startup"         // the startup message was read
	Check          Point = "check"           // the query whether the node takes writes
	Begin          Point = "begin"           // BEGIN, before its effect
	Limits         Point = "limits"          // set_config
	Insert         Point = "insert"          // before the first row is inserted, by INSERT or COPY; for COPY see [Fault.Row]
	InsertAnswered Point = "insert answered" // all rows are inserted, the answer is not sent
	Copying        Point = "copying"         // some rows of a COPY are inserted, more may come
	Table          Point = "table"           // the query about the table that ends a COPY
	Triggers       Point = "triggers"        // the query whether triggers may remove stored rows
	Known          Point = "known"           // before rows are looked for by the hash of their payload
	Compare        Point = "compare"         // before rows are compared by their payload
	Catalog        Point = "catalog"         // the query for the text of a CHECK
	Foresight      Point = "foresight"       // before a CHECK is evaluated beside the table
	Offer          Point = "offer"           // the cursor over rows that are asked about
	Ask            Point = "ask"             // before the first of them; each is at Insert then, alone
	Asked          Point = "asked"           // before the results are sent
	Constraints    Point = "constraints"     // SET CONSTRAINTS ALL IMMEDIATE
	Seen           Point = "seen"            // before any row of a range of time is read
	Confirm        Point = "confirm"         // the write that a COMMIT then has to log
	Commit         Point = "commit"          // COMMIT was read and is not applied
	CommitApplied  Point = "commit applied"  // committed, the answer is not sent
	Rollback       Point = "rollback"        // ROLLBACK was read; with an error the transaction stays failed
	Ping           Point = "ping"            // an empty query
	Any            Point = "any"             // every point but Connect and Startup
)

// Fault is a failure at a point. The zero value of every field except Point means nothing. A fault with only a Point
// cuts the connection there.
type Fault struct {
	Point Point
	// After is how many matching moments pass before the first strike.
	After int
	// Count is the number of strikes; 0 is one, -1 all until it is healed.
	Count int
	// Row limits the fault to statements, and transactions at Commit, with such a row. For Compare the rows have only
	// DecisionID, Time and Raw, for Known DecisionID, Time and Sum. In a COPY a fault at Insert strikes when the
	// first such row comes, and names it. Without Row that is the first row.
	Row func(Row) bool
	// MinRows limits it to those with at least this many rows.
	MinRows int

	// Delay passes before anything else. statement_timeout, a cancel request or a restart end it early, as on a slow
	// server.
	Delay time.Duration
	// LivesOn makes the delay ignore cancel requests. With Cut the client loses the connection at once, and the
	// statement still takes effect after the delay.
	LivesOn bool
	// Cut closes the connection without an answer. Unless LivesOn is set, the transaction rolls back.
	Cut bool

	// SQLSTATE is answered, with Severity (default ERROR; FATAL and PANIC end the session).
	SQLSTATE, Severity string
	// Message and Detail are the server's texts. By default both quote a row, as a server may.
	Message, Detail string
	// Schema, Table, Column and Constraint are named in the answer. Table is decision_logs where a code of the classes
	// 22, 23 or 42 comes at Insert.
	Schema, Table, Column, Constraint string
}

type fault struct {
	Fault
	seen, struck int
	healed       bool
}

// due counts one more moment and reports whether the fault strikes.
func (f *fault) due(p Point, rows []Row) bool {
	switch {
	case f.healed, f.Point != p && (f.Point != Any || p == Connect || p == Startup), len(rows) < f.MinRows:
		return false
	case f.Row != nil && !anyRow(rows, f.Row):
		return false
	}
	if f.seen++; f.seen <= f.After {
		return false
	}
	if f.Count >= 0 && f.struck >= max(f.Count, 1) {
		return false
	}
	f.struck++
	return true
}

func anyRow(rows []Row, is func(Row) bool) bool {
	for i := range rows {
		if is(rows[i]) {
			return true
		}
	}
	return false
}

// Inject adds a fault until heal is called or its count is used up. Several at one point strike in the order in which
// they were added, until one ends the statement.
func (s *Server) Inject(f Fault) (heal func()) {
	if f.SQLSTATE == "" && f.Delay == 0 && !f.LivesOn {
		f.Cut = true
	}
	own := &fault{Fault: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		own.healed = true
		s.sweep()
	}
}

// sweep removes faults that can strike no more.
func (s *Server) sweep() {
	kept := s.faults[:0:0]
	for _, f := range s.faults {
		if !f.healed && (f.Count < 0 || f.struck < max(f.Count, 1)) {
			kept = append(kept, f)
		}
	}
	s.faults = kept
}

// due returns the faults that strike now.
func (s *Server) due(p Point, rows []Row) []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var now []Fault
	for _, f := range s.faults {
		if f.due(p, rows) {
			now = append(now, f.Fault)
		}
	}
	if now != nil {
		s.sweep()
	}
	return now
}

// failure is the answer of a fault with a code.
func (f *Fault) failure(p Point, rows []Row) *failure {
	x := &failure{code: f.SQLSTATE, severity: f.Severity, message: f.Message, detail: f.Detail,
		schema: f.Schema, table: f.Table, column: f.Column, constr: f.Constraint}
	quoted := ""
	for i := range rows {
		if f.Row == nil || f.Row(rows[i]) {
			quoted = string(rows[i].Raw)
			break
		}
	}
	if x.message == "" {
		x.message = "refused " + quoted
	}
	if x.detail == "" && quoted != "" {
		x.detail = "Failing row contains (" + quoted + ")."
		x.hint = quoted
	}
	if p == Insert && x.table == "" && len(x.code) == 5 {
		switch x.code[:2] {
		case "22", "23", "42":
			x.onTable()
		}
	}
	return x
}

// refusal is a trigger for each row.
type refusal struct{ code func(Row) string }

// Refuse raises the code that code returns for a row, before the row is inserted; an empty code accepts it. The first
// refused row ends its statement. code must not call the server.
func (s *Server) Refuse(code func(Row) string) (heal func()) {
	own := &refusal{code}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = append(s.refusals[:len(s.refusals):len(s.refusals)], own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		kept := s.refusals[:0:0]
		for _, r := range s.refusals {
			if r != own {
				kept = append(kept, r)
			}
		}
		s.refusals = kept
	}
}

// Alter adds a trigger to the table that can change a row before it is stored, or drop it by returning false. It must
// not call the server.
func (s *Server) Alter(row func(*Row) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alters = append(s.alters[:len(s.alters):len(s.alters)], row)
}

// Remove adds a deferred trigger to the table that deletes the new rows for which it returns true. It must not call the
// server.
func (s *Server) Remove(row func(Row) bool) (drop func()) {
	own := &row
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removals = append(s.removals[:len(s.removals):len(s.removals)], own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.removals = slices.DeleteFunc(slices.Clone(s.removals), func(o *func(Row) bool) bool { return o == own })
	}
}

// fire runs the deferred triggers over the new rows of a transaction.
func (s *Server) fire(t *transaction) {
	if t == nil || t.ended || t.durable {
		return
	}
	for _, removes := range s.removals {
		t.inserted = slices.DeleteFunc(t.inserted, func(row *tuple) bool {
			gone := (*removes)(row.Row)
			if gone && s.rows[row.key()] == row {
				delete(s.rows, row.key())
			}
			t.confirms = t.confirms || gone
			return gone
		})
	}
}

// altered returns a row after the triggers, nil if one dropped it.
func (s *Server) altered(r *Row) *Row {
	s.mu.Lock()
	alters := s.alters
	s.mu.Unlock()
	if len(alters) == 0 {
		return r
	}
	other := *r
	for _, alter := range alters {
		if !alter(&other) {
			return nil
		}
	}
	return &other
}

// refuse runs the triggers over a row.
func refuse(triggers []*refusal, r *Row) *failure {
	for _, t := range triggers {
		if code := t.code(*r); code != "" {
			x := fail(code, "refused %s", r.Raw)
			x.detail, x.hint = "Failing row contains ("+r.DecisionID+", "+string(r.Raw)+").", string(r.Raw)
			return x
		}
	}
	return nil
}

// ReadOnly makes the node refuse writes, also in open sessions.
func (s *Server) ReadOnly() (heal func()) { return s.raise(&s.readOnly) }

// Full fills the server's disk: every write is refused with 53100.
func (s *Server) Full() (heal func()) { return s.raise(&s.full) }

// RefuseCopy gives the table row-level security, so that it takes rows only by INSERT.
func (s *Server) RefuseCopy() (heal func()) { return s.raise(&s.noCopy) }

// DropIdentity drops the unique index: ON CONFLICT is refused and any other insert stores doubles.
func (s *Server) DropIdentity() (heal func()) { return s.raise(&s.doubles) }

// ShortOfIDs has few transaction ids left: the server warns of that whenever it gives one out.
func (s *Server) ShortOfIDs() (heal func()) { return s.raise(&s.short) }

// StandbyAway disconnects the synchronous standby. A COMMIT that wrote anything waits until the standby is back, and
// so do all that wait for its rows. A cancel request, or the end of the session, ends the wait. The rows are visible
// then, and the standby does not have them. The client gets a warning, if it is still there.
func (s *Server) StandbyAway() (back func()) {
	open := s.gate(&s.standby)
	return func() {
		open()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.standby) == 0 { // it catches up
			for _, t := range s.committed {
				t.alone = false
			}
		}
	}
}

// Alone reports whether the synchronous standby is away.
func (s *Server) Alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.standby) > 0
}

// Promote replaces the server by the standby, which has only confirmed rows.
func (s *Server) Promote(down time.Duration) {
	s.mu.Lock()
	s.committed = slices.DeleteFunc(s.committed, func(t *tuple) bool {
		if t.alone {
			delete(s.rows, t.key())
		}
		return t.alone
	})
	for _, b := range s.sessions {
		if b.tx != nil {
			b.tx.durable = false // in the log of the lost server
		}
	}
	s.mu.Unlock()
	s.Crash(down)
}

// CancelSync ends the waits for the standby, like pg_cancel_backend, and returns their number.
func (s *Server) CancelSync() (canceled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.sessions {
		if b.syncs {
			b.interrupt(cancel)
			canceled++
		}
	}
	return canceled
}

// LoseCancels drops cancel requests, like a firewall or a pooler.
func (s *Server) LoseCancels() (heal func()) { return s.raise(&s.cancels) }

// Hang makes the server accept and never answer, like one that is stopped or cut off. Connections stay open.
func (s *Server) Hang() (heal func()) { return s.gate(&s.hung) }

// Lock locks the table like ALTER TABLE: statements on it wait, unless their transaction used it before.
func (s *Server) Lock() (unlock func()) { return s.gate(&s.locks) }

func (s *Server) raise(count *int) (heal func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*count++
	healed := false
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !healed {
			healed = true
			*count--
		}
	}
}

// gate adds a channel to gates that is closed when it opens.
func (s *Server) gate(gates *[]chan struct{}) (open func()) {
	own := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	*gates = append((*gates)[:len(*gates):len(*gates)], own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		kept := (*gates)[:0:0]
		for _, g := range *gates {
			if g == own {
				close(own)
				continue
			}
			kept = append(kept, g)
		}
		*gates = kept
	}
}
