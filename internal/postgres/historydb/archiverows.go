package historydb

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/postgres/db"
)

// archiveColumnsSQL are the columns of the table $1 in the order of decision_logs. Each has its name, its type, its number, whether it
// is computed, and whether its type came with Postgres. Behind these are its name quoted, the literal in front of its value in a line,
// and its name as a literal.
const archiveColumnsSQL = `
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnum, a.attgenerated <> '', a.atttypid < 16384, quote_ident(a.attname), quote_literal(to_json(a.attname::text)::text || ':'), quote_literal(a.attname)
  FROM pg_attribute a LEFT JOIN pg_attribute p ON p.attrelid = 'decision_logs'::regclass AND p.attname = a.attname AND NOT p.attisdropped
 WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY p.attnum, a.attnum`

// archiveColumn is a column as SQL has it.
type archiveColumn struct {
	archive.Column
	number                int16 // which no other column of the table has, nor had
	computed, builtIn     bool
	ident, label, literal string // quoted by the server
}

func archiveColumns(ctx context.Context, conn *pgx.Conn, table uint32) ([]archiveColumn, error) {
	rows, err := conn.Query(ctx, archiveColumnsSQL, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (archiveColumn, error) {
		var c archiveColumn
		err := row.Scan(&c.Name, &c.Type, &c.number, &c.computed, &c.builtIn, &c.ident, &c.label, &c.literal)
		return c, err
	})
}

// hiddenSQL tells whether policies of a table may hide rows from this role. They may even hide them from the owner.
const hiddenSQL = `SELECT row_security_active($1::oid)`

// Shape is the columns of a row. Those that Postgres computes are left out. It refuses a table whose policies may hide rows: these would
// be in no archive, and neither in its count nor in its hash.
func (d *archiveDay) Shape(ctx context.Context) (archive.Shape, error) {
	var hidden bool
	if err := d.conn.QueryRow(ctx, hiddenSQL, d.oid).Scan(&hidden); err != nil {
		return archive.Shape{}, d.of.failed("read the policies", err)
	}
	if hidden {
		return archive.Shape{}, &archive.CannotError{Why: "row-level security holds for this role in " + d.table + ", and may hide rows from the archive",
			Do: "use a role with BYPASSRLS, or ALTER TABLE " + d.table + " NO FORCE ROW LEVEL SECURITY, and archive as its owner"}
	}
	columns, err := archiveColumns(ctx, d.conn, d.oid)
	if err != nil {
		return archive.Shape{}, d.of.failed("read the columns", err)
	}
	var s archive.Shape
	for _, c := range columns {
		switch {
		case c.computed:
			s.LeftOut = append(s.LeftOut, c.Column)
		case c.Type == "money" || c.Type == "money[]":
			return s, &archive.CannotError{Why: "column " + c.Name + " is of type " + c.Type + ", whose text differs from session to session",
				Do: "make it numeric, or archive by another tool"}
		default:
			s.Columns = append(s.Columns, c.Column)
		}
	}
	return s, nil
}

// carried are the columns of a shape as SQL has them; they are the table's own still.
func carried(ctx context.Context, conn *pgx.Conn, table uint32, shape []archive.Column) ([]archiveColumn, error) {
	have, err := archiveColumns(ctx, conn, table)
	if err != nil {
		return nil, err
	}
	byName := map[string]archiveColumn{}
	for _, c := range have {
		byName[c.Name] = c
	}
	var columns []archiveColumn
	for _, want := range shape {
		c, ok := byName[want.Name]
		if !ok || c.computed || c.Type != want.Type {
			return nil, &archive.CannotError{Why: "the table has no column " + db.Identifier(want.Name) + " of type " + want.Type + ", which the archive has",
				Do: "add it as it was, or restore into a table that has it"}
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// archiveLine is SQL for a row's line: a JSON object of all that is not NULL. Values of jsonb, whole numbers and booleans are
// in it as they are. Any other value is its text in a string, so each type comes back as it was. A null of jsonb is not NULL.
//
// It is of a row d of [archiveFrom]. A payload that nobody can read is archived as its twin, all of which is unfaithful then.
func archiveLine(columns []archiveColumn) string { return archiveLineOf(columns, true) }

// archiveLineOf is archiveLine. Without twins it is of a row d of any table, none of whose payloads needs one.
func archiveLineOf(columns []archiveColumn, twins bool) string {
	var b strings.Builder
	begin, end := `'{' || concat_ws(',', `, `) || '}'`
	if len(columns) > mostArguments {
		begin, end = `'{' || array_to_string(ARRAY[`, `], ',') || '}'`
	}
	b.WriteString(begin)
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		value := `d.` + c.ident
		switch c.Type {
		case "jsonb":
			value += `::text`
			if twins {
				value = `CASE WHEN u.expands THEN ` + db.TwinOf(c.ident) + ` ELSE ` + value + ` END`
			}
		case "boolean", "smallint", "integer", "bigint":
			value += `::text`
		case "timestamp with time zone", "timestamp without time zone", "date":
			value = `to_json(` + value + `)::text`
		default:
			if twins && c.Name == "unfaithful" {
				value = `CASE WHEN u.expands THEN '{""}' ELSE ` + value + ` END`
			}
			value = `to_json(` + value + `::text)::text`
		}
		b.WriteString(c.label + ` || ` + value)
	}
	b.WriteString(end)
	return b.String()
}

// mostArguments limits the values of a call of concat_ws, which takes less time than array_to_string. Postgres allows 99.
const mostArguments = 90

// archiveFrom is the FROM of [archiveLine], of a table whose name is quoted.
func archiveFrom(columns []archiveColumn, table string) string {
	expands := db.ExpandsSQL
	if slices.ContainsFunc(columns, isHash) {
		expands = db.UnreadableSQL
	}
	return table + ` AS d CROSS JOIN LATERAL (SELECT ` + expands + ` AS expands OFFSET 0) AS u`
}

// isHash reports whether a column has the hash of the payload as it came. A row with one is readable, see
// [db.UnreadableSQL].
func isHash(c archiveColumn) bool { return c.Name == "raw_sha256" }

// lines returns SQL for the lines of the table and its FROM. If no payload needs a twin, both are plain.
func (d *archiveDay) lines(columns []archiveColumn, plain bool) (line, from string) {
	if plain {
		return archiveLineOf(columns, false), d.table + ` AS d`
	}
	return archiveLine(columns), archiveFrom(columns, d.table)
}

// sumsOf is SQL that counts and hashes as [archive.Total] does, over a column h of SHA-256 sums.
const sumsOf = `count(h), coalesce(sum(('x' || encode(substr(h, 1, 8), 'hex'))::bit(64)::int8), 0)::text, coalesce(sum(('x' || encode(substr(h, 9, 8), 'hex'))::bit(64)::int8), 0)::text,
	coalesce(sum(('x' || encode(substr(h, 17, 8), 'hex'))::bit(64)::int8), 0)::text, coalesce(sum(('x' || encode(substr(h, 25, 8), 'hex'))::bit(64)::int8), 0)::text`

// scanTotal reads what sumsOf selects.
type scanTotal struct {
	rows int64
	sums [4]string
}

func (s *scanTotal) into() []any {
	return []any{&s.rows, &s.sums[0], &s.sums[1], &s.sums[2], &s.sums[3]}
}

func (s *scanTotal) total() (archive.Total, error) {
	t := archive.Total{Rows: s.rows}
	for i, text := range s.sums {
		n, err := modulo(text)
		if err != nil {
			return t, err
		}
		t.Sum[i] = n
	}
	return t, nil
}

// modulo takes a sum of the server modulo 2^64.
func modulo(sum string) (uint64, error) {
	n, ok := new(big.Int).SetString(sum, 10)
	if !ok {
		return 0, errclass.As(&db.AnswerError{Problem: "a sum is not a number"}, errclass.CodeProtocol)
	}
	return n.And(n, wordMask).Uint64(), nil
}

// wordMask takes a number modulo 2^64, as two's complement has it for negative ones.
var wordMask = new(big.Int).SetUint64(1<<64 - 1)

// Sum has Postgres count and hash all rows.
func (d *archiveDay) Sum(ctx context.Context, shape archive.Shape) (archive.Total, error) {
	t, err := d.sum(ctx, shape)
	return t, d.of.failed("count and hash the day", err)
}

func (d *archiveDay) sum(ctx context.Context, shape archive.Shape) (archive.Total, error) {
	columns, err := carried(ctx, d.conn, d.oid, shape.Columns)
	if err != nil {
		return archive.Total{}, err
	}
	// Postgres hashes each row. Adding the hashes up costs it as much again, so that is done here.
	var t archive.Total
	out := &binaryRows{each: func(columns [][]byte) error { return addHash(&t, columns[0]) }}
	line, from := d.lines(columns, false)
	all := `COPY (SELECT sha256(convert_to(` + line + `, 'UTF8')) FROM ` + from
	if !slices.ContainsFunc(columns, isHash) {
		err = copyOut(ctx, d.conn, out, all+`) TO STDOUT (FORMAT binary)`)
		return t, err
	}
	// Postgres may read the table with several workers where no payload needs a twin. The others are told as NULL, and are few.
	line, from = d.lines(columns, true)
	others := false
	out.null = func() { others = true }
	err = copyOut(ctx, d.conn, out, `COPY (SELECT CASE WHEN d.raw_sha256 IS NOT NULL THEN sha256(convert_to(`+line+`, 'UTF8')) END FROM `+from+`) TO STDOUT (FORMAT binary)`)
	if err != nil || !others {
		return t, err
	}
	err = copyOut(ctx, d.conn, &binaryRows{each: out.each}, all+` WHERE d.raw_sha256 IS NULL) TO STDOUT (FORMAT binary)`)
	return t, err
}

// addHash counts a row by the hash that the server sent.
func addHash(t *archive.Total, hash []byte) error {
	if len(hash) != sha256.Size {
		return errclass.As(&db.AnswerError{Problem: "a hash has another length"}, errclass.CodeProtocol)
	}
	t.AddHash([sha256.Size]byte(hash))
	return nil
}

// copyOut passes the rows of a COPY in binary, which has to come to its end.
func copyOut(ctx context.Context, conn *pgx.Conn, out *binaryRows, sql string) error {
	_, err := conn.PgConn().CopyTo(ctx, out, sql)
	if out.refused != nil {
		return out.refused
	}
	if err == nil && !out.ended {
		err = errclass.As(&db.AnswerError{Problem: "COPY ended without its end"}, errclass.CodeProtocol)
	}
	return err
}

// binaryRows takes binary COPY apart.
type binaryRows struct {
	each    func(columns [][]byte) error
	null    func() // is called for a row whose column is NULL; nil: such a row is an error
	rest    []byte
	columns [][]byte
	begun   bool
	ended   bool
	refused error // by each
}

const binaryHeader = 19 // signature, flags and an extension that is empty

func (r *binaryRows) Write(b []byte) (int, error) {
	r.rest = append(r.rest, b...)
	at := 0
	for !r.ended {
		left := r.rest[at:]
		if !r.begun {
			if len(left) < binaryHeader {
				break
			}
			r.begun, at = true, at+binaryHeader
			continue
		}
		if len(left) < 2 {
			break
		}
		if int16(binary.BigEndian.Uint16(left)) == -1 {
			r.ended = true
			break
		}
		behind, whole, null := r.row(left)
		if !whole {
			break
		}
		at += behind
		switch {
		case !null:
			r.refused = r.each(r.columns)
		case r.null != nil:
			r.null()
		default:
			r.refused = errclass.As(&db.AnswerError{Problem: "a row is NULL"}, errclass.CodeProtocol)
		}
		if r.refused != nil {
			return 0, r.refused
		}
	}
	r.rest = append(r.rest[:0], r.rest[at:]...)
	return len(b), nil
}

// row finds the columns of the row that begins b, and where it ends. It is not whole if b has only a part of it.
func (r *binaryRows) row(b []byte) (behind int, whole, null bool) {
	r.columns = r.columns[:0]
	at := 2
	for range binary.BigEndian.Uint16(b) {
		if len(b) < at+4 {
			return 0, false, false
		}
		n := int(int32(binary.BigEndian.Uint32(b[at:])))
		if at += 4; n < 0 {
			null = true
			continue
		}
		if len(b) < at+n {
			return 0, false, false
		}
		r.columns = append(r.columns, b[at:at+n])
		at += n
	}
	return at, true, null
}
