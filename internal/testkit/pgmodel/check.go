package pgmodel

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"
)

// Constraint is a CHECK of the table.
type Constraint struct {
	Name string // in lower case
	// Columns are those that Refuses looks at.
	Columns []string
	// Refuses says whether it refuses a row. It must not call the server.
	Refuses func(Row) bool
}

// AddConstraint is ALTER TABLE ... ADD CONSTRAINT. It waits until no open transaction has used the table, and later
// statements wait for it.
func (s *Server) AddConstraint(c Constraint) (drop func()) {
	defer s.Lock()()
	for {
		s.mu.Lock()
		at := slices.IndexFunc(s.sessions, func(b *session) bool { return b.tx != nil && b.tx.usesIt && !b.tx.ended })
		if at < 0 {
			defer s.mu.Unlock()
			return s.constrain(c)
		}
		over := s.sessions[at].tx.over
		s.mu.Unlock()
		<-over
	}
}

// expression is what the catalog says that the check is.
func (c *Constraint) expression() string { return "docket_model(" + c.Name + ")" }

// Constrain puts a constraint on the table, for the rows that come from now on.
func (s *Server) Constrain(c Constraint) (drop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.constrain(c)
}

func (s *Server) constrain(c Constraint) (drop func()) {
	own := &c
	s.checks = append(s.checks[:len(s.checks):len(s.checks)], own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.checks = slices.DeleteFunc(slices.Clone(s.checks), func(o *Constraint) bool { return o == own })
	}
}

// checkSQL asks for the text of a check.
const checkSQL = `select pg_get_expr(c.conbin, c.conrelid), case when c.conrelid = 'decision_logs'::regclass then '' ` +
	`else pg_get_partition_constraintdef(c.conrelid) end, coalesce(a.attname::text, ''), ` +
	`set_config('transaction_read_only', 'on', true) from pg_constraint c cross join lateral unnest(c.conkey) as k(attnum) ` +
	`left join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum where c.contype = 'c' and c.conname = $1::text ` +
	`and (c.conrelid = 'decision_logs'::regclass or c.conislocal and c.conrelid in ` +
	`(select inhrelid from pg_inherits where inhparent = 'decision_logs'::regclass)) limit 64`

func (s *session) constraint(p *portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return answer{}, f
	}
	var a answer
	for _, c := range s.server.checks {
		if c.Name != string(p.params[0]) {
			continue
		}
		for _, column := range c.Columns {
			a.rows = append(a.rows, []value{c.expression(), "", column, "on"})
		}
	}
	a.tag = fmt.Sprintf("SELECT %d", len(a.rows))
	return a, nil
}

// foresightPlan is the evaluation of a check beside the table.
type foresightPlan struct {
	columns []source
	where   string
}

func readForesight(captured []string) (any, []uint32, error) {
	params, names := list(captured[0]), list(captured[1])
	if len(params) != len(names) {
		return nil, nil, errOther
	}
	plan := &foresightPlan{where: captured[2]}
	for i, name := range names {
		u := unnested.FindStringSubmatch(params[i])
		c := setters[name]
		if u == nil || u[1] != strconv.Itoa(i+1) || c.set == nil {
			return nil, nil, fmt.Errorf("%w: %s", errOther, params[i])
		}
		oid := c.oid
		if c.json {
			oid = pgtype.JSONBOID
		}
		if arrayTypes[u[2]] != oid {
			return nil, nil, fmt.Errorf("%w: %s", errOther, params[i])
		}
		plan.columns = append(plan.columns, source{name, i, oid})
	}
	return plan, nil, nil
}

func (p *foresightPlan) rows(s *session, b *portal) ([]Row, *failure) {
	return decodeRows(s, b, p.columns)
}

func (s *session) foresee(p *portal) (answer, *failure) {
	where := p.plan.(*foresightPlan).where
	s.server.mu.Lock()
	checks := s.server.checks
	s.server.mu.Unlock()
	at := slices.IndexFunc(checks, func(c *Constraint) bool { return where == "(not ("+c.expression()+"))" })
	if at < 0 {
		return answer{}, fail("42883", "function docket_model does not exist")
	}
	var a answer
	for i := range p.rows {
		if checks[at].Refuses(p.rows[i]) {
			a.rows = append(a.rows, []value{int64(i + 1)})
		}
	}
	a.tag = fmt.Sprintf("SELECT %d", len(a.rows))
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return a, s.interrupted()
}
