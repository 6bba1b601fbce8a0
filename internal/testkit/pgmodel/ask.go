package pgmodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// askSQL asks about the rows of the cursor one by one; refusedSQL tells what it found out.
const (
	askSQL = `do $docket$ declare docket_rows refcursor := 'docket_rows'; i record; refused text[] := '{}'; code text; ` +
		`constr text; col text; rel text; begin for i in execute 'fetch all from docket_rows' loop begin insert ` +
		`into decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service, ` +
		`labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256, raw_bytes, unfaithful, uploaded_by) values (i.decision_id, ` +
		`i.ts, i.path, i.allowed, i.requested_by, i.req_id, i.opa_id, i.opa_version, i.service, i.labels::jsonb, ` +
		`i.bundles::jsonb, i.raw::jsonb, i.source_topic, i.source_partition, i.source_offset, i.source_index, i.raw_sha256, i.raw_bytes, i.unfaithful::text[], i.uploaded_by); ` +
		`raise exception using errcode = 'dk000'; exception when sqlstate 'dk000' or unique_violation then null; ` +
		`when data_exception or integrity_constraint_violation then get stacked diagnostics code = ` +
		`returned_sqlstate, constr = constraint_name, col = column_name, rel = table_name; refused := ` +
		`array_append(refused, concat_ws(e'\x1f', i.n, code, translate(constr, e'\x1e\x1f', '??'), ` +
		`translate(col, e'\x1e\x1f', '??'), translate(rel, e'\x1e\x1f', '??'))); end; end loop; ` +
		`close docket_rows; perform set_config('docket.refused', array_to_string(refused, e'\x1e'), true); end $docket$`

	refusedSQL = `select current_setting('docket.refused')`
)

// endless takes from a name what ends a field or a line.
var endless = strings.NewReplacer("\x1e", "?", "\x1f", "?")

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
		s.tx.refused = append(s.tx.refused, strings.Join([]string{strconv.Itoa(i + 1), f.code,
			endless.Replace(f.constr), endless.Replace(f.column), endless.Replace(f.table)}, "\x1f"))
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
	a := answer{tag: "SELECT 1", rows: [][]value{{strings.Join(s.tx.refused, "\x1e")}}}
	return a, s.interrupted()
}
