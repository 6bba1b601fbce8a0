package pgmodel

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// errOther says that a statement is of a known kind, in an unknown form.
var errOther = errors.New("a statement of another form")

// insertPlan is a parsed insert.
type insertPlan struct {
	columns []source
	skips   bool // ON CONFLICT DO NOTHING
}

// source says which parameter fills a column.
type source struct {
	name  string
	param int
	oid   uint32
}

var (
	unnested = regexp.MustCompile(`^\$(\d+)::(\w+)\[\]$`)
	selected = regexp.MustCompile(`^i\.(\w+)(::jsonb|::text\[\])?$`)
	setting  = regexp.MustCompile(`set_config\('(\w+)', \$(\d+), true\)`)
)

func list(s string) []string {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// readInsert follows each column from the select list through the alias to the parameter.
func readInsert(captured []string) (any, []uint32, error) {
	into, from, params, alias := list(captured[0]), list(captured[1]), list(captured[2]), list(captured[3])
	if len(into) != len(from) || len(params) != len(alias) {
		return nil, nil, errOther
	}
	plan := &insertPlan{skips: captured[4] != ""}
	oids := make([]uint32, len(params))
	for i, name := range into {
		m := selected.FindStringSubmatch(from[i])
		if m == nil {
			return nil, nil, fmt.Errorf("%w: %s", errOther, from[i])
		}
		at := slices.Index(alias, m[1])
		if at < 0 {
			return nil, nil, fmt.Errorf("%w: %s", errOther, from[i])
		}
		u := unnested.FindStringSubmatch(params[at])
		if u == nil {
			return nil, nil, fmt.Errorf("%w: %s", errOther, params[at])
		}
		n, err := strconv.Atoi(u[1])
		oid, ok := arrayTypes[u[2]]
		c := setters[name]
		if err != nil || !ok || n < 1 || n > len(params) || c.set == nil || c.oid != oid || c.json != (m[2] == "::jsonb") || (name == "unfaithful") != (m[2] == "::text[]") {
			return nil, nil, fmt.Errorf("%w: %s", errOther, name)
		}
		oids[n-1] = arrayOIDs[oid]
		plan.columns = append(plan.columns, source{name, n - 1, oid})
	}
	return plan, oids, nil
}

var arrayOIDs = map[uint32]uint32{
	pgtype.TextOID: pgtype.TextArrayOID, pgtype.TimestamptzOID: pgtype.TimestamptzArrayOID, pgtype.BoolOID: pgtype.BoolArrayOID,
	pgtype.Int8OID: pgtype.Int8ArrayOID, pgtype.Int4OID: pgtype.Int4ArrayOID, pgtype.ByteaOID: pgtype.ByteaArrayOID,
}

func (p *insertPlan) rows(s *session, b *portal) ([]Row, *failure) {
	return decodeRows(s, b, p.columns)
}

// comparePlan is a parsed comparison.
type comparePlan struct{ columns []source }

func readCompare([]string) (any, []uint32, error) {
	return &comparePlan{[]source{{"decision_id", 0, pgtype.TextOID}, {"ts", 1, pgtype.TimestamptzOID}, {"raw", 2, pgtype.TextOID}}},
		[]uint32{pgtype.TextArrayOID, pgtype.TimestamptzArrayOID, pgtype.TextArrayOID, pgtype.TimestamptzOID, pgtype.TimestamptzOID}, nil
}

func (p *comparePlan) rows(s *session, b *portal) ([]Row, *failure) {
	return decodeRows(s, b, p.columns)
}

// readKnown reads the query for rows by the hash of their payload.
func readKnown([]string) (any, []uint32, error) {
	return &comparePlan{[]source{{"decision_id", 0, pgtype.TextOID}, {"ts", 1, pgtype.TimestamptzOID}, {"raw_sha256", 2, pgtype.ByteaOID}}},
		[]uint32{pgtype.TextArrayOID, pgtype.TimestamptzArrayOID, pgtype.ByteaArrayOID, pgtype.TimestamptzOID, pgtype.TimestamptzOID}, nil
}

func decodeRows(s *session, p *portal, columns []source) ([]Row, *failure) {
	n := 0
	arrays := make([]array, len(columns))
	for i, c := range columns {
		if p.params[c.param] == nil {
			continue // unnest(NULL) has no rows
		}
		if format(p.formats, c.param) != 1 {
			s.server.stranger("an array in text form")
			return nil, fail("0A000", "the model knows arrays in binary form only")
		}
		var f *failure
		if arrays[i], f = decodeArray(p.params[c.param], c.oid); f != nil {
			return nil, f
		}
		n = max(n, len(arrays[i].elems))
	}
	rows := make([]Row, n)
	for i := range rows {
		rows[i].Session = s.pid
		for k, c := range columns {
			setters[c.name].set(&rows[i], arrays[k].at(i))
		}
	}
	return rows, nil
}

// setter puts a value into its column; nil is NULL.
type setter struct {
	oid  uint32
	json bool
	set  func(*Row, []byte)
}

var setters = map[string]setter{
	"decision_id": {pgtype.TextOID, false, func(r *Row, b []byte) {
		r.DecisionID = string(b)
		r.lacks("decision_id", b)
	}},
	"ts": {pgtype.TimestamptzOID, false, func(r *Row, b []byte) {
		if b != nil {
			r.ts = int64(binary.BigEndian.Uint64(b))
			r.Time = fromMicros(r.ts)
		}
		r.lacks("ts", b)
	}},
	"path":         {pgtype.TextOID, false, func(r *Row, b []byte) { r.Path = text(b) }},
	"allowed":      {pgtype.BoolOID, false, func(r *Row, b []byte) { r.Allowed = sql.Null[bool]{V: b != nil && b[0] != 0, Valid: b != nil} }},
	"requested_by": {pgtype.TextOID, false, func(r *Row, b []byte) { r.RequestedBy = text(b) }},
	"req_id":       {pgtype.Int8OID, false, func(r *Row, b []byte) { r.ReqID = integer(b) }},
	"opa_id":       {pgtype.TextOID, false, func(r *Row, b []byte) { r.OPAID = text(b) }},
	"opa_version":  {pgtype.TextOID, false, func(r *Row, b []byte) { r.OPAVersion = text(b) }},
	"service":      {pgtype.TextOID, false, func(r *Row, b []byte) { r.Service = text(b) }},
	"labels":       {pgtype.TextOID, true, func(r *Row, b []byte) { r.Labels = b }},
	"bundles":      {pgtype.TextOID, true, func(r *Row, b []byte) { r.Bundles = b }},
	"raw":          {pgtype.TextOID, true, func(r *Row, b []byte) { r.Raw = b; r.lacks("raw", b) }},
	"source_topic": {pgtype.TextOID, false, func(r *Row, b []byte) { r.Topic = string(b); r.lacks("source_topic", b) }},
	"source_partition": {pgtype.Int4OID, false, func(r *Row, b []byte) {
		r.Partition = int32(integer4(b))
		r.lacks("source_partition", b)
	}},
	"source_offset": {pgtype.Int8OID, false, func(r *Row, b []byte) { r.Offset = integer(b).V; r.lacks("source_offset", b) }},
	"source_index":  {pgtype.Int4OID, false, func(r *Row, b []byte) { r.Index = int32(integer4(b)); r.lacks("source_index", b) }},
	"raw_sha256":    {pgtype.ByteaOID, false, func(r *Row, b []byte) { r.Sum = b }},
	"raw_bytes":     {pgtype.ByteaOID, false, func(r *Row, b []byte) { r.Bytes = b }},
	"unfaithful":    {pgtype.TextOID, false, func(r *Row, b []byte) { r.Unfaithful = b != nil }},
	"uploaded_by":   {pgtype.TextOID, false, func(r *Row, b []byte) { r.UploadedBy = text(b) }},
}

// lacks notes the first NOT NULL column that is NULL.
func (r *Row) lacks(column string, b []byte) {
	if b == nil && r.missing == "" {
		r.missing = column
	}
}

func text(b []byte) sql.Null[string] { return sql.Null[string]{V: string(b), Valid: b != nil} }

func integer(b []byte) sql.Null[int64] {
	if b == nil {
		return sql.Null[int64]{}
	}
	return sql.Null[int64]{V: int64(binary.BigEndian.Uint64(b)), Valid: true}
}

func integer4(b []byte) uint32 {
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// readLimits reads the names of the settings in their order.
func readLimits(captured []string) (any, []uint32, error) {
	plan := map[string]int{}
	for _, m := range setting.FindAllStringSubmatch(captured[0], -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil || n < 1 {
			return nil, nil, errOther
		}
		switch m[1] {
		case "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout":
			plan[m[1]] = n - 1
		case "tcp_keepalives_idle", "tcp_keepalives_interval": // there is no network to lose
		default:
			return nil, nil, fmt.Errorf("%w: setting %s", errOther, m[1])
		}
	}
	return plan, nil, nil
}
