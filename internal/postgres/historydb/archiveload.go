package historydb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/history/archive/columnar"
	"docket/internal/postgres/db"
)

// staged are lines as JSON.
const staged = `WITH s AS MATERIALIZED (SELECT l, l::json AS j FROM unnest($1::text[]) AS l) `

// Load stores lines by their identity, and compares what is there afterwards.
func (d *archiveDay) Load(ctx context.Context, shape []archive.Column, lines [][]byte) (archive.Loaded, error) {
	var parent uint32
	if err := d.conn.QueryRow(ctx, `SELECT 'decision_logs'::regclass::oid`).Scan(&parent); err != nil {
		return archive.Loaded{}, d.of.failed("load rows", err)
	}
	columns, err := carried(ctx, d.conn, parent, shape)
	if err != nil {
		return archive.Loaded{}, d.of.failed("load rows", err)
	}
	var l archive.Loaded
	for {
		err := db.Durably(ctx, d.conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
			var err error
			if l, err = d.load(ctx, tx, columns, lines); err != nil {
				return err
			}
			// Rows that were there already are restored only once the standby has them. The temporary table makes the
			// commit wait for it as well, but the promise does not hang on that table.
			return db.Confirm(ctx, tx)
		})
		ahead := (*errAhead)(nil)
		if !errors.As(err, &ahead) {
			return l, d.of.failed("load rows", err)
		}
		if err := d.pass(ctx, ahead.newest); err != nil {
			return archive.Loaded{}, d.refused("count the day", err)
		}
	}
}

// stage is a temporary table for the rows of a batch. The session has it, so no other role can have made it. It goes
// with its transaction: a session that ends with one would wait for a standby that is away, and keep the day.
const (
	stage = `pg_temp.docket_restoring`
	place = `"docket place of the line"` // in a batch, beside columns of any name
)

// load stores a batch: COPY into a temporary table, one INSERT, and the hash of each row that the table has now.
func (d *archiveDay) load(ctx context.Context, tx pgx.Tx, columns []archiveColumn, lines [][]byte) (archive.Loaded, error) {
	var l archive.Loaded
	if err := d.copied(ctx, tx, columns, lines); err != nil {
		return l, err
	}
	names := identifiers(columns)
	var newest *time.Time
	err := tx.QueryRow(ctx, `WITH stored AS (INSERT INTO decision_logs (`+names+`) OVERRIDING SYSTEM VALUE
		SELECT `+names+` FROM `+stage+` ORDER BY `+place+` ON CONFLICT (decision_id, ts) DO NOTHING RETURNING stored_at) SELECT count(*), max(stored_at) FROM stored`).Scan(&l.Stored, &newest)
	if err != nil {
		return l, err
	}
	if err := d.behind(ctx, tx, newest); err != nil {
		return l, err
	}
	others, err := d.equal(ctx, tx, columns, lines, &l)
	if err != nil {
		return l, err
	}
	l.Equal = max(l.Equal-l.Stored, 0)
	if len(others) == 0 {
		return l, nil
	}
	return l, d.differing(ctx, tx, columns, others, &l)
}

func identifiers(columns []archiveColumn) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.ident)
	}
	return strings.Join(names, ", ")
}

// copied fills the temporary table with the values of lines, and the place of each.
func (d *archiveDay) copied(ctx context.Context, tx pgx.Tx, columns []archiveColumn, lines [][]byte) error {
	names := identifiers(columns)
	if _, err := tx.Exec(ctx, `CREATE TEMP TABLE docket_restoring ON COMMIT DROP AS SELECT `+names+`, 0 AS `+place+` FROM decision_logs WITH NO DATA`); err != nil {
		return err
	}
	text, err := copyText(columns, lines)
	if err != nil {
		return err
	}
	_, err = tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(text), `COPY `+stage+` (`+names+`, `+place+`) FROM STDIN`)
	return err
}

// copyText writes the values of lines in the text format of COPY.
func copyText(columns []archiveColumn, lines [][]byte) ([]byte, error) {
	size := 0
	for _, line := range lines {
		size += len(line) + len(line)/8 + 16
	}
	text := make([]byte, 0, size)
	cells := make([][]byte, len(columns))
	for n, line := range lines {
		if err := columnar.Split(line, len(columns), func(i int) string { return columns[i].Name }, cells); err != nil {
			return nil, &archive.CannotError{Why: "a row of the archive does not have the archive's columns", Do: "run docket archive verify --day"}
		}
		for i, cell := range cells {
			switch {
			case cell == nil:
				text = append(text, `\N`...)
			case columns[i].Type == "jsonb":
				text = escaped(text, cell)
			default:
				text = escaped(text, columnar.Text(cell))
			}
			text = append(text, '\t')
		}
		text = append(strconv.AppendInt(text, int64(n), 10), '\n')
	}
	return text, nil
}

// escaped appends a value as COPY reads it.
func escaped(to, value []byte) []byte {
	from := 0
	for i, c := range value {
		if c != '\\' && c != '\n' && c != '\r' && c != '\t' {
			continue
		}
		to = append(append(to, value[from:i]...), '\\')
		switch from = i + 1; c {
		case '\n':
			to = append(to, 'n')
		case '\r':
			to = append(to, 'r')
		case '\t':
			to = append(to, 't')
		default:
			to = append(to, c)
		}
	}
	return append(to, value[from:]...)
}

// equal has Postgres hash the rows that the table has now, and counts those that are as they were archived. It returns
// the other lines.
func (d *archiveDay) equal(ctx context.Context, tx pgx.Tx, columns []archiveColumn, lines [][]byte, l *archive.Loaded) (others []string, err error) {
	rows, err := tx.Query(ctx, `SELECT s.`+place+`, t.h FROM `+stage+` AS s LEFT JOIN LATERAL (SELECT sha256(convert_to(`+archiveLine(columns)+`, 'UTF8')) AS h FROM `+archiveFrom(columns, "decision_logs")+`
			WHERE d.decision_id = s.decision_id AND d.ts = s.ts AND d.ts >= $1 AND d.ts < $2 OFFSET 0) AS t ON true`, d.day.Time, d.day.Next().Time)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var hash []byte
		var n int
		if err := rows.Scan(&n, (*pgtype.DriverBytes)(&hash)); err != nil {
			return nil, err
		}
		if n < 0 || n >= len(lines) {
			return nil, errclass.As(&db.AnswerError{Problem: "a row has no line"}, errclass.CodeProtocol)
		}
		if sum := sha256.Sum256(lines[n]); bytes.Equal(hash, sum[:]) {
			l.Equal++
			l.Total.AddHash(sum)
			continue
		}
		others = append(others, string(lines[n]))
	}
	return others, rows.Err()
}

// differing looks at lines whose rows are not as they were archived. Such a row counts with its line: the hash proves
// that no line was passed over, and the comparison says how many are not in the table as they were. OFFSET 0 keeps a
// line from being made twice.
func (d *archiveDay) differing(ctx context.Context, tx pgx.Tx, columns []archiveColumn, lines []string, l *archive.Loaded) error {
	var sums scanTotal
	var again, differs int64
	err := tx.QueryRow(ctx, staged+`, c AS MATERIALIZED (SELECT l, r.decision_id AS id, t.line, CASE WHEN t.line <> l
			THEN CASE WHEN t.raw_bytes IS NULL AND j -> 'raw_bytes' IS NULL THEN t.raw = (j -> 'raw')::text::jsonb ELSE coalesce(t.raw_bytes = (j ->> 'raw_bytes')::bytea, false) END END AS same
		FROM s, json_to_record(j) AS r(decision_id text, ts text)
		LEFT JOIN LATERAL (SELECT d.raw, d.raw_bytes, `+archiveLine(columns)+` AS line FROM `+archiveFrom(columns, "decision_logs")+`
			WHERE d.decision_id = r.decision_id AND d.ts = r.ts::timestamptz AND d.ts >= $2 AND d.ts < $3 OFFSET 0) AS t ON true)
		SELECT count(*) FILTER (WHERE line <> l AND same), count(*) FILTER (WHERE line <> l AND NOT same),
			coalesce(array_agg(id) FILTER (WHERE line <> l AND NOT same), '{}'), `+sumsOf+`
		FROM (SELECT *, sha256(convert_to(CASE WHEN line <> l THEN l ELSE line END, 'UTF8')) AS h FROM c OFFSET 0) AS a`,
		lines, d.day.Time, d.day.Next().Time).Scan(append([]any{&again, &differs, &l.Conflicts}, sums.into()...)...)
	if err != nil {
		return err
	}
	l.Again, l.Differs = l.Again+again, l.Differs+differs
	total, err := sums.total()
	l.Total.Join(total)
	return err
}
