package pgmodel

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// answer is the result of a statement.
type answer struct {
	tag  string
	rows [][]value
}

type column struct {
	name string
	oid  uint32
	size int16
}

// prepared is a parsed statement.
type prepared struct {
	*statement
	params int // how many
	plan   any // the plan that read made of the text
	oids   []uint32
}

func (p *prepared) endsTransaction() bool {
	return p.point == Commit || p.point == Rollback
}

func (p *prepared) paramOID(i int) uint32 {
	if i < len(p.oids) {
		return p.oids[i]
	}
	return pgtype.TextOID
}

// statement is a kind of statement that the model knows.
type statement struct {
	point   Point
	columns []column
	text    *regexp.Regexp // of its normal form: lower case, single blanks
	// read makes a plan of the captured text; nil if there is nothing to read. An error says that the statement is
	// unknown.
	read func(captured []string) (plan any, oids []uint32, err error)
	run  func(*session, *portal) (answer, *failure)
}

// statements returns all known statements.
func statements() []*statement {
	text := func(name string) column { return column{name, pgtype.TextOID, -1} }
	return []*statement{
		{point: Begin, text: whole(`begin(?: isolation level read committed)?`), run: (*session).begin},
		{point: Limits, text: whole(`select ((?:set_config\(.*\))+)`), read: readLimits, run: (*session).setLimits,
			columns: slices.Repeat([]column{text("set_config")}, 7)},
		{point: Insert, text: whole(`copy decision_logs \(([^()]*)\) from stdin \(format binary\)`), read: readCopy},
		{point: Table, text: whole(regexp.QuoteMeta(tableSQL)), run: (*session).table, columns: []column{{"?column?", pgtype.Int8OID, 8}, {"ln", pgtype.Float8OID, 8}}},
		{point: Triggers, text: whole(`select (sqrt\(-\()?` + regexp.QuoteMeta(removable) + `(?:\)::int\))?`), read: readTriggers, run: (*session).removable,
			columns: []column{{"?column?", pgtype.BoolOID, 1}}},
		{point: Insert, text: whole(`insert into decision_logs \(([^()]*)\) select (.*) from unnest\((.*)\) as i ?\(([^()]*)\)( on conflict \(decision_id, ts\) do nothing)? returning decision_id, ts`),
			read: readInsert, run: (*session).insert, columns: []column{text("decision_id"), {"ts", pgtype.TimestamptzOID, 8}, text("uploaded_by")}},
		{point: Compare, text: whole(`select i\.n, i\.raw is not null and d\.unfaithful is null and d\.raw is not distinct from i\.raw::jsonb from unnest\(\$1::text\[\], \$2::timestamptz\[\], \$3::text\[\]\) with ordinality as i ?\(decision_id, ts, raw, n\) cross join lateral \(select raw, unfaithful from decision_logs where decision_id = i\.decision_id and ts = i\.ts and ts between \$4::timestamptz and \$5::timestamptz limit 1\) d`),
			read: readCompare, run: (*session).compare, columns: []column{{"n", pgtype.Int8OID, 8}, {"?column?", pgtype.BoolOID, 1}}},
		{point: Known, text: whole(regexp.QuoteMeta(knownSQL)), read: readKnown, run: (*session).known, columns: []column{{"array_agg", pgtype.Int8ArrayOID, -1}}},
		{point: Offer, text: whole(`declare docket_rows no scroll cursor for select i\.\* from unnest\((.*)\) with ordinality as i\(([^()]*), n\)`),
			read: readOffer, run: (*session).offer},
		{point: Ask, text: whole(regexp.QuoteMeta(askSQL)), run: (*session).ask},
		{point: Asked, text: whole(regexp.QuoteMeta(refusedSQL)), run: (*session).asked,
			columns: []column{text("current_setting")}},
		{point: Catalog, text: whole(regexp.QuoteMeta(checkSQL)), run: (*session).constraint,
			columns: []column{text("pg_get_expr"), text("case"), text("coalesce"), text("set_config")}},
		{point: Foresight, text: whole(`select i\.docket_n from unnest\((.*)\) with ordinality as i\(([^()]*), docket_n\) where (.*)`),
			read: readForesight, run: (*session).foresee, columns: []column{{"docket_n", pgtype.Int8OID, 8}}},
		{point: Seen, text: whole(`select d\.raw::text, d\.source_topic, d\.source_partition, d\.ts, d\.uploaded_by from decision_logs as d where d\.ts between \$1::timestamptz and \$2::timestamptz and not \(case when d\.raw_sha256 is null then .* else false end\) limit 1`),
			run: (*session).seen, columns: []column{text("raw"), text("source_topic"), {"source_partition", pgtype.Int4OID, 4}, {"ts", pgtype.TimestamptzOID, 8}, text("uploaded_by")}},
		{point: Confirm, text: whole(`select pg_logical_emit_message\(true, 'docket', ''\)`), run: (*session).confirm,
			columns: []column{text("pg_logical_emit_message")}},
		{point: Constraints, text: whole(`set constraints all immediate`), run: (*session).constraints},
		{point: Commit, text: whole(`commit`), run: (*session).commitTransaction},
		{point: Rollback, text: whole(`rollback`), run: (*session).rollback},
		{point: Check, text: whole(`select current_setting\('transaction_read_only'\)`), run: (*session).takesWrites,
			columns: []column{text("current_setting")}},
	}
}

// tableSQL checks whether the table allows COPY.
const tableSQL = `select 1 / (select count(*) from pg_index x where x.indrelid = ` +
	`'decision_logs'::regclass and x.indisunique and x.indisvalid and x.indimmediate and x.indpred is null and ` +
	`x.indexprs is null and x.indnkeyatts = 2 and (select count(*) from pg_attribute where attrelid = x.indrelid ` +
	`and attname in ('decision_id', 'ts') and attnum in (x.indkey[0], x.indkey[1])) = 2), ` +
	`ln((select count(*) = 20 from pg_attribute where ` +
	`attrelid = 'decision_logs'::regclass and case when attname in ('decision_id', 'path', 'requested_by', ` +
	`'opa_id', 'opa_version', 'service', 'source_topic', 'uploaded_by') then atttypid in ('text'::regtype, ` +
	`'varchar'::regtype) when attname in ('labels', 'bundles', 'raw') then atttypid = 'jsonb'::regtype when ` +
	`attname in ('source_partition', 'source_index') then atttypid = 'int4'::regtype when attname in ` +
	`('req_id', 'source_offset') then atttypid = 'int8'::regtype when attname = 'ts' then atttypid = ` +
	`'timestamptz'::regtype and atttypmod in (-1, 6) when attname = 'allowed' then atttypid = 'bool'::regtype when attname in ('raw_sha256', 'raw_bytes') then atttypid = 'bytea'::regtype when attname = 'unfaithful' then atttypid = 'text[]'::regtype end and not exists ` +
	`(select from pg_rewrite where ev_class = 'decision_logs'::regclass and ev_type = '3'))::int)`

// removable asks for triggers that may remove a row after it is counted as stored.
const removable = `((select relkind = 'v' from pg_class where oid = 'decision_logs'::regclass) ` +
	`or exists (select from pg_trigger where not tgisinternal and tgenabled <> 'd' and tgtype & 4 = 4 ` +
	`and (tgrelid = 'decision_logs'::regclass or pg_partition_root(tgrelid) = 'decision_logs'::regclass)))`

// knownSQL finds rows by the hash of their payload.
const knownSQL = `select array_agg(case when d.raw_sha256 = i.raw_sha256 then i.n else -i.n end) ` +
	`from unnest($1::text[], $2::timestamptz[], $3::bytea[]) with ordinality as i(decision_id, ts, raw_sha256, n) ` +
	`cross join lateral (select raw_sha256 from decision_logs where decision_id = i.decision_id and ts = i.ts ` +
	`and ts between $4::timestamptz and $5::timestamptz limit 1) d`

var known = statements()

// understood caches parsed texts for all servers, because there are few texts and many servers.
var understood sync.Map

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile(`^` + pattern + `$`) }

// prepare parses a statement, or notes it as unknown.
func (s *Server) prepare(sql string) (*prepared, *failure) {
	if p, ok := understood.Load(sql); ok {
		return p.(*prepared), nil
	}
	normal := strings.ToLower(strings.Join(strings.Fields(sql), " "))
	for _, k := range known {
		captured := k.text.FindStringSubmatch(normal)
		if captured == nil {
			continue
		}
		p := &prepared{statement: k, params: countParams(normal)}
		if k.read != nil {
			var err error
			if p.plan, p.oids, err = k.read(captured[1:]); err != nil {
				s.stranger(fmt.Sprintf("%s: %v", sql, err))
				return nil, fail("42601", "syntax error: the model does not know %s", err)
			}
		}
		understood.Store(strings.Clone(sql), p)
		return p, nil
	}
	s.stranger(sql)
	return nil, fail("42601", "syntax error: the model does not know this statement")
}

var param = regexp.MustCompile(`\$(\d+)`)

func countParams(sql string) int {
	most := 0
	for _, m := range param.FindAllStringSubmatch(sql, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && n < 1<<15 {
			most = max(most, n)
		}
	}
	return most
}

// run executes a statement: faults before it, the statement, faults after it.
func (s *session) run(p *portal) (answer, *failure) {
	s.begins(p)
	defer s.rests()
	rows, f := s.rowsOf(p)
	p.rows = rows
	var a answer
	if f == nil && !p.endsTransaction() {
		f = s.meet(p.point, rows)
	}
	if f == nil {
		a, f = p.run(s, p)
	}
	if f == nil && p.point == Insert {
		if f = s.meet(InsertAnswered, rows); f != nil {
			s.tell(Event{Point: InsertAnswered, Rows: rows}, f)
			return a, f
		}
	}
	if p.point != Commit { // it reports its own event
		s.tell(Event{Point: p.point, Rows: rows}, f)
	}
	return a, f
}

func (s *session) rowsOf(p *portal) ([]Row, *failure) {
	if plan, ok := p.plan.(rowsPlan); ok {
		return plan.rows(s, p)
	}
	return nil, nil
}

// rowsPlan is a plan of a statement that carries rows.
type rowsPlan interface {
	rows(*session, *portal) ([]Row, *failure)
}

// begins notes that a statement runs, and its deadline. COMMIT has none.
func (s *session) begins(p *portal) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.running, s.deadline = true, time.Time{}
	if s.tx == nil && p.point != Begin && !p.endsTransaction() {
		s.tx = newTransaction(s)
		s.tx.implicit = true
	}
	if s.tx != nil && s.tx.limits.statement > 0 && !p.endsTransaction() {
		s.deadline = time.Now().Add(s.tx.limits.statement)
	}
}

func (s *session) rests() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.running, s.deaf = false, false
	if s.pending < terminate {
		s.pending = none
	}
}
