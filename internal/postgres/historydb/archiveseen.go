package historydb

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/postgres/db"
)

// A day is hashed while it is read, and dropped later. Hashing it again under the lock costs the server as much as reading it. It is not
// necessary if no row came, changed or left meanwhile, which the server knows without a look at their columns: a row has the
// number of the transaction that wrote it.

const (
	// identitySQL is a number for the identity of a row, which costs little.
	identitySQL = `hashtextextended(decision_id, 0)`
	// seenSQL is a transaction number of a snapshot: all that came before it had ended, in every database of the server.
	seenSQL = `SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text`
	// unchangedSQL counts the rows of a table, and tells whether all of them were written before such a transaction. A row that is
	// so old that its number is used again may seem to be written later. It is never the other way round if the transaction is not
	// that old. A table that is not kept as Postgres keeps tables may tell of no transaction.
	unchangedSQL = `
SELECT count(*), coalesce(sum(` + identitySQL + `), 0)::text, coalesce(min(age(xmin)) > age($1::text::xid), true) AND age($1::text::xid) BETWEEN 0 AND 1000000000
       AND EXISTS (SELECT FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.oid = $2 AND am.amname = 'heap') FROM %table%`
)

// seenRows are the rows of a day as a snapshot had them.
type seenRows struct {
	total archive.Total // of their lines, each hashed by Postgres
	names uint64        // the sum of their identities, modulo 2^64
	oid   uint32
	shape []archiveColumn
	since string // see [seenSQL]; empty: nothing is known of transactions
}

// see begins to read what the snapshot of the present transaction has.
func (d *archiveDay) see(ctx context.Context, columns []archiveColumn) (*seenRows, error) {
	s := &seenRows{oid: d.oid, shape: columns}
	if slices.ContainsFunc(columns, changesAlone) {
		return s, nil
	}
	return s, d.conn.QueryRow(ctx, seenSQL).Scan(&s.since)
}

// changesAlone reports whether values of a column can change their text while no row is written. Those of an enumeration do where a
// label is renamed.
func changesAlone(c archiveColumn) bool {
	kind, _, _ := strings.Cut(c.Type, "(")
	return !c.builtIn || !slices.Contains(steadyTypes, kind)
}

var steadyTypes = []string{
	"bigint", "boolean", "bytea", "character varying", "date", "double precision", "inet", "integer", "interval", "json", "jsonb", "numeric", "real", "smallint", "text", "text[]",
	"timestamp with time zone", "timestamp without time zone", "uuid",
}

// passing counts rows on their way to each.
func (s *seenRows) passing(each func(line []byte) error) func([][]byte) error {
	return func(columns [][]byte) error {
		if len(columns) != 3 || len(columns[2]) != 8 {
			return errclass.As(&db.AnswerError{Problem: "a row has other columns"}, errclass.CodeProtocol)
		}
		if err := addHash(&s.total, columns[1]); err != nil {
			return err
		}
		s.names += binary.BigEndian.Uint64(columns[2])
		return each(columns[0])
	}
}

// now is what Sum returns. Nobody may write to the table meanwhile. If its rows are those that were read, they are not hashed again.
func (d *archiveDay) now(ctx context.Context, shape archive.Shape) (archive.Total, error) {
	same, err := d.unchanged(ctx, shape)
	switch {
	case err != nil:
		return archive.Total{}, err
	case same:
		return d.seen.total, nil
	}
	return d.sum(ctx, shape)
}

// unchanged reports whether the table has the rows that were read, and no others. It may be false although it has.
func (d *archiveDay) unchanged(ctx context.Context, shape archive.Shape) (bool, error) {
	s := d.seen
	if s == nil || s.since == "" || s.oid != d.oid {
		return false, nil
	}
	columns, err := carried(ctx, d.conn, d.oid, shape.Columns)
	if err != nil || !slices.Equal(columns, s.shape) {
		return false, err
	}
	var rows int64
	var sum string
	var earlier bool
	err = d.conn.QueryRow(ctx, strings.ReplaceAll(unchangedSQL, "%table%", d.table), pgx.QueryExecModeDescribeExec, s.since, d.oid).Scan(&rows, &sum, &earlier)
	if err != nil {
		return false, err
	}
	names, err := modulo(sum)
	return earlier && rows == s.total.Rows && names == s.names, err
}
