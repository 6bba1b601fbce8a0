package historydb

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// leastHalf is how many rows are worth a session of their own.
const leastHalf = 500

// Load stores lines by their identity, and compares what is there afterwards. Two sessions share the lines, as the server takes
// longer for them than this program. If the second one fails, the first loads its share.
func (d *archiveDay) Load(ctx context.Context, shape []archive.Column, lines [][]byte) (archive.Loaded, error) {
	var parent uint32
	if err := d.conn.QueryRow(ctx, `SELECT 'decision_logs'::regclass::oid`).Scan(&parent); err != nil {
		return archive.Loaded{}, d.of.failed("load rows", err)
	}
	columns, err := carried(ctx, d.conn, parent, shape)
	if err != nil {
		return archive.Loaded{}, d.of.failed("load rows", err)
	}
	half := len(lines) / 2
	if half < leastHalf || !d.helped(ctx) {
		return d.loadAlone(ctx, columns, lines)
	}
	var there archive.Loaded
	var failed error
	var other sync.WaitGroup
	other.Go(func() { there, failed = d.loadOn(ctx, d.second, columns, lines[half:]) })
	l, err := d.loadAlone(ctx, columns, lines[:half])
	other.Wait()
	if err == nil && failed != nil && ctx.Err() == nil {
		there, failed = d.loadAlone(ctx, columns, lines[half:])
	}
	if err != nil || failed != nil {
		return archive.Loaded{}, errors.Join(err, failed)
	}
	l.Join(there)
	return l, nil
}

// immediateSQL has deferred triggers and constraints of the transaction run now.
const immediateSQL = `SET CONSTRAINTS ALL IMMEDIATE`

// helped reports whether there is a second session. It has no lock of the day, as storing needs none.
func (d *archiveDay) helped(ctx context.Context) bool {
	if d.second == nil && !d.alone {
		conn, err := d.of.connect(ctx)
		if d.second = conn; err != nil {
			d.second, d.alone = nil, true
		}
	}
	return d.second != nil
}

// loadAlone loads on the session that has the day. It waits until rows may be loaded.
func (d *archiveDay) loadAlone(ctx context.Context, columns []archiveColumn, lines [][]byte) (archive.Loaded, error) {
	for {
		l, err := d.loadOn(ctx, d.conn, columns, lines)
		ahead := (*errAhead)(nil)
		if !errors.As(err, &ahead) {
			return l, d.of.failed("load rows", err)
		}
		if err := d.pass(ctx, ahead.newest); err != nil {
			return archive.Loaded{}, d.refused("count the day", err)
		}
	}
}

// loadOn loads in one transaction.
func (d *archiveDay) loadOn(ctx context.Context, conn *pgx.Conn, columns []archiveColumn, lines [][]byte) (l archive.Loaded, err error) {
	err = db.Durably(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if l, err = d.load(ctx, tx, columns, lines); err != nil {
			return err
		}
		// Rows that were there already are restored only once the standby has them. The temporary table makes the
		// commit wait for it as well, but the promise does not hang on that table.
		return db.Confirm(ctx, tx)
	})
	return l, err
}

// stage is a temporary table for the rows of a batch. The session has it, so no other role can have made it. It goes
// with its transaction: a session that ends with one would wait for a standby that is away, and keep the day.
const (
	stage = `pg_temp.docket_restoring`
	place = `"docket place of the line"` // in a batch, beside columns of any name
)

// load stores a batch, and has the server hash each row that the table has now. Rows that the table does not have go there by COPY.
// If it has some, COPY fills a temporary table, and one INSERT stores the others.
func (d *archiveDay) load(ctx context.Context, tx pgx.Tx, columns []archiveColumn, lines [][]byte) (archive.Loaded, error) {
	var l archive.Loaded
	b, err := batchOf(columns, lines)
	if err != nil {
		return l, err
	}
	var newest *time.Time
	stored := false
	if b.newest != nil && !d.some.Load() {
		if l.Stored, stored = d.copiedAtOnce(ctx, tx, columns, b); stored {
			newest = b.newest
		}
	}
	if !stored {
		if l.Stored, newest, err = d.staged(ctx, tx, columns, b); err != nil {
			return l, err
		}
		d.some.Store(l.Stored < int64(len(lines)))
	}
	if err := d.behind(ctx, tx, newest); err != nil {
		return l, err
	}
	if _, err := tx.Exec(ctx, immediateSQL); err != nil { // a deferred trigger may delete a row
		return l, err
	}
	others, err := d.equal(ctx, tx, columns, lines, b, stored && b.hashed, &l)
	if err != nil {
		return l, err
	}
	l.Equal = max(l.Equal-l.Stored, 0)
	if len(others) == 0 {
		return l, nil
	}
	return l, d.differing(ctx, tx, columns, others, &l)
}

// copiedAtOnce copies rows into the table. It stores nothing if the server refuses any of them: staged then says what of it is an
// error.
func (d *archiveDay) copiedAtOnce(ctx context.Context, tx pgx.Tx, columns []archiveColumn, b *lineBatch) (n int64, stored bool) {
	try, err := tx.Begin(ctx) // a savepoint
	if err != nil {
		return 0, false
	}
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(b.text(false)), `COPY decision_logs (`+identifiers(columns)+`) FROM STDIN`)
	if err != nil {
		_ = try.Rollback(ctx) // the next statement fails if this does
		return 0, false
	}
	return tag.RowsAffected(), try.Commit(ctx) == nil
}

// staged stores the rows whose identity the table does not have.
func (d *archiveDay) staged(ctx context.Context, tx pgx.Tx, columns []archiveColumn, b *lineBatch) (n int64, newest *time.Time, err error) {
	names := identifiers(columns)
	if _, err := tx.Exec(ctx, `CREATE TEMP TABLE docket_restoring ON COMMIT DROP AS SELECT `+names+`, 0 AS `+place+` FROM decision_logs WITH NO DATA`); err != nil {
		return 0, nil, err
	}
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(b.text(true)), `COPY `+stage+` (`+names+`, `+place+`) FROM STDIN`); err != nil {
		return 0, nil, err
	}
	err = tx.QueryRow(ctx, `WITH stored AS (INSERT INTO decision_logs (`+names+`) OVERRIDING SYSTEM VALUE
		SELECT `+names+` FROM `+stage+` ORDER BY `+place+` ON CONFLICT (decision_id, ts) DO NOTHING RETURNING stored_at) SELECT count(*), max(stored_at) FROM stored`).Scan(&n, &newest)
	return n, newest, err
}

func identifiers(columns []archiveColumn) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.ident)
	}
	return strings.Join(names, ", ")
}

// lineBatch are lines as the text format of COPY has them.
type lineBatch struct {
	rows   []byte
	ends   []int // of each row, without its end of line
	ids    []string
	times  []time.Time
	newest *time.Time // stored_at; nil: a line has none that can be read
	hashed bool       // each has the hash of its payload, so none needs a twin
}

// batchOf takes lines apart.
func batchOf(columns []archiveColumn, lines [][]byte) (*lineBatch, error) {
	size := 0
	for _, line := range lines {
		size += len(line) + len(line)/8
	}
	b := &lineBatch{rows: make([]byte, 0, size), ends: make([]int, 0, len(lines)), ids: make([]string, 0, len(lines)), times: make([]time.Time, 0, len(lines))}
	cells := make([][]byte, len(columns))
	id, at, stored := columnNamed(columns, "decision_id"), columnNamed(columns, "ts"), columnNamed(columns, "stored_at")
	hash := columnNamed(columns, "raw_sha256")
	legible := stored >= 0
	b.hashed = hash >= 0
	var newest time.Time
	for _, line := range lines {
		err := columnar.Split(line, len(columns), func(i int) string { return columns[i].Name }, cells)
		whole := err == nil && id >= 0 && at >= 0 && cells[id] != nil && cells[at] != nil
		var ts time.Time
		if whole {
			ts, whole = timeOf(cells[at])
		}
		if !whole {
			return nil, &archive.CannotError{Why: "a row of the archive does not have the archive's columns", Do: "run docket archive verify --day"}
		}
		b.hashed = b.hashed && cells[hash] != nil
		b.ids, b.times = append(b.ids, string(columnar.Text(cells[id]))), append(b.times, ts)
		if legible {
			var when time.Time
			if when, legible = timeOf(cells[stored]); legible && when.After(newest) {
				newest = when
			}
		}
		for i, cell := range cells {
			if i > 0 {
				b.rows = append(b.rows, '\t')
			}
			switch {
			case cell == nil:
				b.rows = append(b.rows, `\N`...)
			case columns[i].Type == "jsonb":
				b.rows = escaped(b.rows, cell)
			default:
				b.rows = escaped(b.rows, columnar.Text(cell))
			}
		}
		b.ends = append(b.ends, len(b.rows))
	}
	if legible {
		b.newest = &newest
	}
	return b, nil
}

// timeOf reads a time of a line.
func timeOf(cell []byte) (time.Time, bool) {
	if micros, ok := columnar.Time(cell); ok {
		return time.UnixMicro(micros), true
	}
	t, err := time.Parse(time.RFC3339Nano, string(columnar.Text(cell)))
	return t, err == nil
}

func columnNamed(columns []archiveColumn, name string) int {
	return slices.IndexFunc(columns, func(c archiveColumn) bool { return c.Name == name })
}

// text is what COPY reads: all rows, with the place of each if placed.
func (b *lineBatch) text(placed bool) []byte {
	text := make([]byte, 0, len(b.rows)+len(b.ends)*8)
	from := 0
	for n, end := range b.ends {
		if text = append(text, b.rows[from:end]...); placed {
			text = strconv.AppendInt(append(text, '\t'), int64(n), 10)
		}
		text = append(text, '\n')
		from = end
	}
	return text
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
// the other lines. If the rows are plain, no payload needs a twin.
func (d *archiveDay) equal(ctx context.Context, tx pgx.Tx, columns []archiveColumn, lines [][]byte, b *lineBatch, plain bool, l *archive.Loaded) (others []string, err error) {
	line, from := archiveLine(columns), archiveFrom(columns, decisionsTable)
	if plain {
		line, from = archiveLineOf(columns, false), decisionsTable+` AS d`
	}
	rows, err := tx.Query(ctx, `SELECT (s.n - 1)::int, t.h FROM unnest($3::text[], $4::timestamptz[]) WITH ORDINALITY AS s(decision_id, ts, n)
			LEFT JOIN LATERAL (SELECT sha256(convert_to(`+line+`, 'UTF8')) AS h FROM `+from+`
			WHERE d.decision_id = s.decision_id AND d.ts = s.ts AND d.ts >= $1 AND d.ts < $2 OFFSET 0) AS t ON true`, d.day.Time, d.day.Next().Time, b.ids, b.times)
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
