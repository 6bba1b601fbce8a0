package pgmodel

import (
	"fmt"
	"slices"
	"strconv"
)

// askSQL asks about the rows of the cursor one by one; refusedSQL tells what it found out.
const (
	askSQL = `do $docket$ declare docket_rows refcursor := 'docket_rows'; i record; refused jsonb[] := '{}'; code text; ` +
		`constr text; col text; rel text; begin loop fetch docket_rows into i; exit when not found; begin insert ` +
		`into decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service, ` +
		`labels, bundles, raw, source_topic, source_partition, source_offset, source_index) values (i.decision_id, ` +
		`i.ts, i.path, i.allowed, i.requested_by, i.req_id, i.opa_id, i.opa_version, i.service, i.labels::jsonb, ` +
		`i.bundles::jsonb, i.raw::jsonb, i.source_topic, i.source_partition, i.source_offset, i.source_index); ` +
		`raise exception using errcode = 'dk000'; exception when sqlstate 'dk000' or unique_violation then null; ` +
		`when data_exception or integrity_constraint_violation then get stacked diagnostics code = ` +
		`returned_sqlstate, constr = constraint_name, col = column_name, rel = table_name; refused := refused || ` +
		`jsonb_build_object('n', i.n, 'code', code, 'constr', constr, 'col', col, 'rel', rel); end; end loop; ` +
		`close docket_rows; perform set_config('docket.refused', to_jsonb(refused)::text, true); end $docket$`

	refusedSQL = `select r.n, r.code, r.constr, r.col, r.rel from ` +
		`jsonb_to_recordset(current_setting('docket.refused')::jsonb) as r(n int8, code text, constr text, col ` +
		`text, rel text)`
)

// offerPlan is a cursor over rows.
type offerPlan struct{ columns []source }

func readOffer(captured []string) (any, []uint32, error) {
	params, names := list(captured[0]), list(captured[1])
	if len(params) != len(names) {
		return nil, nil, errOther
	}
	plan := &offerPlan{}
	for i, name := range names {
		u, c := unnested.FindStringSubmatch(params[i]), setters[name]
		if u == nil || u[1] != strconv.Itoa(i+1) || c.set == nil || arrayTypes[u[2]] != c.oid {
			return nil, nil, fmt.Errorf("%w: %s", errOther, params[i])
		}
		plan.columns = append(plan.columns, source{name, i, c.oid})
	}
	return plan, nil, nil
}

func (p *offerPlan) rows(s *session, b *portal) ([]Row, *failure) {
	return decodeRows(s, b, p.columns)
}

func (s *session) offer(p *portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if f := s.interrupted(); f != nil {
		return answer{}, f
	}
	if s.tx.implicit {
		return answer{}, fail("25P01", "DECLARE CURSOR can only be used in transaction blocks")
	}
	if s.tx.offered != nil {
		return answer{}, fail("42P03", "cursor already exists")
	}
	s.tx.offered = p.rows
	return answer{tag: "DECLARE CURSOR"}, nil
}

// ask inserts each row alone and takes it back.
func (s *session) ask(*portal) (answer, *failure) {
	rows := s.tx.offered
	if rows == nil {
		return answer{}, fail("34000", "cursor does not exist")
	}
	s.tx.offered, s.tx.refused = nil, nil
	if f := s.usesTable(); f != nil {
		return answer{}, f
	}
	for i := range rows {
		f := s.askAbout(rows[i : i+1 : i+1])
		if f == nil || f.code == "23505" && !f.ends() {
			continue
		}
		if f.ends() || len(f.code) != 5 || !slices.Contains([]string{"22", "23"}, f.code[:2]) {
			return answer{}, f
		}
		s.tx.refused = append(s.tx.refused, []value{int64(i + 1), f.code, f.constr, f.column, f.table})
	}
	if f := s.meet(InsertAnswered, rows); f != nil {
		return answer{}, f
	}
	return answer{tag: "DO"}, nil
}

// askAbout is a statement of its own, with its own event.
func (s *session) askAbout(row []Row) *failure {
	from := len(s.tx.inserted)
	f := s.meet(Insert, row)
	if f == nil {
		_, f = s.insert(&portal{prepared: &prepared{statement: &statement{point: Insert}, plan: &insertPlan{}}, rows: row})
	}
	s.server.mu.Lock()
	s.server.undo(s.tx, from)
	s.server.mu.Unlock()
	s.tell(Event{Point: Insert, Rows: row}, f)
	return f
}

func (s *session) asked(*portal) (answer, *failure) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	a := answer{tag: fmt.Sprintf("SELECT %d", len(s.tx.refused)), rows: s.tx.refused}
	return a, s.interrupted()
}
