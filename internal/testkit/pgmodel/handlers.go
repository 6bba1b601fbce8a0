package pgmodel

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

func (s *session) notice(code, message string) {
	s.backend.Send(&pgproto3.NoticeResponse{Severity: "WARNING", SeverityUnlocalized: "WARNING", Code: code, Message: message})
}

func (s *session) begin(*portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return answer{}, f
	}
	switch {
	case s.tx == nil:
		s.tx = newTransaction(s)
	case s.tx.implicit:
		s.tx.implicit = false
	default:
		s.notice("25001", "there is already a transaction in progress")
	}
	return answer{tag: "BEGIN"}, nil
}

func (s *session) setLimits(p *portal) (answer, *failure) {
	plan := p.plan.(map[string]int)
	set := s.limits()
	for name, into := range map[string]*time.Duration{ // the order does not matter
		"statement_timeout": &set.statement, "lock_timeout": &set.lock, "idle_in_transaction_session_timeout": &set.idle,
	} {
		i, ok := plan[name]
		if !ok {
			continue
		}
		ms, err := strconv.ParseInt(string(p.params[i]), 10, 32)
		if err != nil || ms < 0 {
			return answer{}, fail("22023", "invalid value for parameter %q", name)
		}
		*into = time.Duration(ms) * time.Millisecond
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return answer{}, f
	}
	s.tx.limits = set
	row := make([]value, len(p.columns))
	for i := range row {
		row[i] = "on"
		if i < len(p.params) {
			row[i] = string(p.params[i])
		}
	}
	return answer{tag: "SELECT 1", rows: [][]value{row}}, nil
}

func (s *session) takesWrites(*portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return answer{}, f
	}
	on := "off"
	if s.server.readOnly > 0 {
		on = "on"
	}
	return answer{tag: "SELECT 1", rows: [][]value{{on}}}, nil
}

func (s *session) constraints(*portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.fire(s.tx)
	return answer{tag: "SET CONSTRAINTS"}, s.interrupted()
}

func (s *session) commitTransaction(*portal) (answer, *failure) {
	s.server.mu.Lock()
	t := s.tx
	s.server.mu.Unlock()
	switch {
	case t == nil:
		if f := s.meet(Commit, nil); f != nil {
			return answer{}, f
		}
		s.notice("25P01", "there is no transaction in progress")
		return answer{tag: "COMMIT"}, nil
	case t.failed:
		return s.rolledBack()
	}
	return answer{tag: "COMMIT"}, s.commit()
}

// commit commits the session's transaction. Afterwards there is none, even after a failure.
func (s *session) commit() *failure {
	s.server.mu.Lock()
	t := s.tx
	s.server.fire(t)
	rows := t.rowsOf()
	s.running = true
	s.server.mu.Unlock()
	defer s.rests()
	f := s.meet(Commit, rows)
	if f == nil && (len(rows) > 0 || t.confirms) {
		f = s.awaitStandby(t)
	}

	s.server.mu.Lock()
	if f == nil && !t.durable {
		f = s.interrupted()
	}
	s.tx, s.syncs = nil, false
	e := Event{Session: s.pid, Point: Commit, Rows: rows, Applied: f == nil || t.durable}
	if f != nil {
		e.SQLSTATE, e.Cut = f.code, f.silent
	}
	if !e.Applied {
		s.server.abort(t)
	} else {
		if !t.ended {
			s.server.apply(t)
		}
		for i := range e.Rows {
			e.Rows[i].Commit, e.Rows[i].At = t.inserted[i].Commit, t.inserted[i].At
		}
	}
	s.server.tellLocked(e)
	s.server.mu.Unlock()
	if f != nil {
		return f
	}
	if f := s.meet(CommitApplied, rows); f != nil {
		s.tell(Event{Point: CommitApplied, Rows: rows, Applied: true}, f)
		return f
	}
	return nil
}

// awaitStandby waits while the standby is away. The transaction is already in the log, so it cannot be undone.
func (s *session) awaitStandby(t *transaction) *failure {
	for {
		s.server.mu.Lock()
		if s.syncs = false; len(s.server.standby) == 0 {
			t.alone = false
			s.server.mu.Unlock()
			return nil
		}
		back, f := s.server.standby[0], s.interrupted()
		t.durable = t.durable || f == nil
		t.alone, s.syncs = t.durable, t.durable
		s.server.mu.Unlock()
		if f == nil {
			f, _ = s.waitFor(back, nil, nil)
		}
		s.server.mu.Lock()
		durable := t.durable
		s.server.mu.Unlock()
		switch {
		case f == nil:
		case !durable, f.ends():
			return f
		default:
			s.notice("01000", "canceling wait for synchronous replication due to user request")
			return nil
		}
	}
}

// said returns a text or NULL.
func said(text sql.Null[string]) value {
	if !text.Valid {
		return nil
	}
	return text.V
}

// seen returns the first row of a range of time.
func (s *session) seen(p *portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	from, to := int64(binary.BigEndian.Uint64(p.params[0])), int64(binary.BigEndian.Uint64(p.params[1]))
	for _, t := range s.server.committed {
		if at := t.key().ts; from <= at && at <= to {
			return answer{tag: "SELECT 1", rows: [][]value{{string(t.Raw), t.Topic, t.Partition, t.Time, said(t.UploadedBy)}}}, s.interrupted()
		}
	}
	return answer{tag: "SELECT 0"}, s.interrupted()
}

// confirm writes only to the log.
func (s *session) confirm(*portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.tx.confirms = true
	s.getsID()
	return answer{tag: "SELECT 1", rows: [][]value{{"0/0"}}}, s.interrupted()
}

// getsID gives the transaction its id. The mutex is held.
func (s *session) getsID() {
	if s.server.short > 0 && !s.tx.hasID {
		s.notice("01000", "database \"x\" must be vacuumed within 39999999 transactions")
	}
	s.tx.hasID = true
}

func (s *session) rollback(*portal) (answer, *failure) {
	if f := s.meet(Rollback, nil); f != nil {
		return answer{}, f
	}
	return s.rolledBack()
}

func (s *session) rolledBack() (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.tx == nil {
		s.notice("25P01", "there is no transaction in progress")
	}
	s.server.abort(s.tx)
	s.tx = nil
	return answer{tag: "ROLLBACK"}, s.interrupted()
}

// usesTable takes the lock that every statement on the table needs.
func (s *session) usesTable() *failure {
	for {
		s.server.mu.Lock()
		f := s.interrupted()
		if f != nil || s.tx.usesIt || len(s.server.locks) == 0 {
			s.tx.usesIt = true
			s.server.mu.Unlock()
			return f
		}
		lock := s.server.locks[0]
		s.server.mu.Unlock()
		if f := s.awaitLock(lock, nil); f != nil {
			return f
		}
	}
}

func (s *session) insert(p *portal) (answer, *failure) {
	if f := s.usesTable(); f != nil {
		return answer{}, f
	}
	s.server.mu.Lock()
	triggers, checks, readOnly, full, doubles := s.server.refusals, s.server.checks, s.server.readOnly > 0, s.server.full > 0, s.server.doubles > 0
	s.server.mu.Unlock()
	if readOnly {
		return answer{}, fail("25006", "cannot execute INSERT in a read-only transaction")
	}
	var a answer
	skips := p.plan.(*insertPlan).skips
	if skips && doubles {
		return a, fail("42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification")
	}
	for i := range p.rows {
		r := s.server.altered(&p.rows[i])
		if r == nil {
			continue
		}
		if f := acceptable(r, triggers, checks); f != nil {
			return a, f
		}
		if full {
			return a, fail("53100", "could not extend file \"base/5/16385\": No space left on device")
		}
		isNew, f := s.put(r)
		switch {
		case f != nil:
			return a, f
		case isNew:
			a.rows = append(a.rows, []value{r.DecisionID, r.Time})
		case !skips:
			return a, doubled(r)
		}
	}
	a.tag = fmt.Sprintf("INSERT 0 %d", len(a.rows))
	return a, nil
}

func doubled(r *Row) *failure {
	f := fail("23505", "duplicate key value violates unique constraint \"decision_logs_pkey\"").onTable()
	f.constr, f.detail = "decision_logs_pkey", fmt.Sprintf("Key (decision_id, ts)=(%s, %s) already exists.", r.DecisionID, r.Time)
	return f
}

// table fails if there is no unique index.
func (s *session) table(*portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return answer{}, f
	}
	if s.server.doubles > 0 {
		return answer{}, fail("22012", "division by zero")
	}
	return answer{tag: "SELECT 1", rows: [][]value{{int64(1), nil}}}, nil
}

// readTriggers notes whether the query fails where there is such a trigger.
func readTriggers(captured []string) (any, []uint32, error) { return captured[0] != "", nil, nil }

// removable says whether a trigger may remove rows, or fails if it may.
func (s *session) removable(p *portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return answer{}, f
	}
	may := len(s.server.removals) > 0
	if may && p.plan.(bool) {
		return answer{}, fail("2201F", "cannot take square root of a negative number")
	}
	return answer{tag: "SELECT 1", rows: [][]value{{may}}}, nil
}

// acceptable applies the table's rules to a single row, in the server's order.
func acceptable(r *Row, triggers []*refusal, checks []*Constraint) *failure {
	if f := inRange(r.ts); f != nil {
		return f
	}
	for _, b := range [][]byte{r.Labels, r.Bundles, r.Raw} {
		if b == nil {
			continue
		}
		if f := checkJSON(b); f != nil {
			return f
		}
	}
	if f := refuse(triggers, r); f != nil {
		return f
	}
	if r.missing != "" {
		f := fail("23502", "null value in column %q of relation %q violates not-null constraint", r.missing, tableName).onTable()
		f.column, f.detail = r.missing, fmt.Sprintf("Failing row contains (%s, %s, ...).", r.DecisionID, r.Raw)
		return f
	}
	for _, c := range checks {
		if c.Refuses(*r) {
			f := fail("23514", "new row for relation %q violates check constraint %q", tableName, c.Name).onTable()
			f.constr, f.detail = c.Name, fmt.Sprintf("Failing row contains (%s, %s, ...).", r.DecisionID, r.Raw)
			return f
		}
	}
	return fitsIndex(r.DecisionID)
}

// put inserts a row unless its identity exists. It waits for an open transaction with that identity.
func (s *session) put(r *Row) (isNew bool, f *failure) {
	if s.encoding != "UTF8" {
		r.DecisionID, r.Raw = latin1([]byte(r.DecisionID)), []byte(latin1(r.Raw))
	}
	for {
		s.server.mu.Lock()
		if f := s.interrupted(); f != nil {
			s.server.mu.Unlock()
			return false, f
		}
		there := s.server.rows[r.key()]
		if there == nil || s.server.doubles > 0 {
			t := &tuple{Row: *r, owner: s.tx}
			t.StoredAt = s.tx.began
			if there == nil {
				s.server.rows[t.key()] = t
			}
			s.tx.inserted = append(s.tx.inserted, t)
			s.getsID()
			s.server.mu.Unlock()
			return true, nil
		}
		other := there.owner
		s.server.mu.Unlock()
		if other == nil || other == s.tx {
			return false, nil
		}
		if f := s.awaitLock(other.over, other); f != nil {
			return false, f
		}
	}
}

// latin1 decodes text with one byte for each character.
func latin1(b []byte) string {
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes)
}
