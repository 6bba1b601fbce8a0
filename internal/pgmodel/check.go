package pgmodel

import (
	"fmt"
	"regexp"
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

// expression is what the catalog says that the check is.
func (c *Constraint) expression() string { return "docket_model(" + c.Name + ")" }

// Constrain puts a constraint on the table, for the rows that come from now on.
func (s *Server) Constrain(c Constraint) (drop func()) {
	own := &c
	s.mu.Lock()
	defer s.mu.Unlock()
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

var scalar = regexp.MustCompile(`^\$(\d+)::(\w+)(::jsonb)?$`)

// readAsk reads the insert of a single row.
func readAsk(captured []string) (any, []uint32, error) {
	into, from := list(captured[0]), list(captured[1])
	if len(into) != len(from) {
		return nil, nil, errOther
	}
	plan, oids := &insertPlan{single: true}, make([]uint32, len(into))
	for i, name := range into {
		m, c := scalar.FindStringSubmatch(from[i]), setters[name]
		if m == nil || m[1] != strconv.Itoa(i+1) || c.set == nil || arrayTypes[m[2]] != c.oid || c.json != (m[3] != "") {
			return nil, nil, fmt.Errorf("%w: %s", errOther, from[i])
		}
		oids[i] = c.oid
		plan.columns = append(plan.columns, source{name, i, c.oid})
	}
	return plan, oids, nil
}

// decodeRow reads a row of values in binary form.
func decodeRow(s *session, p *portal, columns []source) ([]Row, *failure) {
	row := Row{Session: s.pid}
	for _, c := range columns {
		if format(p.formats, c.param) != 1 {
			s.server.stranger("a value in text form")
			return nil, fail("0A000", "the model knows values in binary form only")
		}
		v, f := binaryField(setter{oid: c.oid}, p.params[c.param])
		if f != nil {
			return nil, f
		}
		setters[c.name].set(&row, v)
	}
	return []Row{row}, nil
}

// savepoint is the only one that a transaction has.
func (s *session) savepoint(*portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return answer{}, f
	}
	if s.tx.implicit || s.tx.marked {
		return answer{}, fail("25P01", "SAVEPOINT can only be used in transaction blocks, and once in the model's")
	}
	s.tx.marked, s.tx.mark = true, len(s.tx.inserted)
	return answer{tag: "SAVEPOINT"}, nil
}

func (s *session) rollbackTo(*portal) (answer, *failure) {
	if f := s.meet(Back, nil); f != nil {
		return answer{}, f
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.tx == nil || !s.tx.marked || s.tx.ended {
		return answer{}, fail("3B001", "savepoint %q does not exist", "docket_ask")
	}
	s.server.undo(s.tx)
	s.tx.failed = false
	return answer{tag: "ROLLBACK"}, s.interrupted()
}
