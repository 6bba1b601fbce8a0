package historydb

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
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
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = string(line)
	}
	var l archive.Loaded
	for {
		err := db.Durably(ctx, d.conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
			var err error
			if l, err = d.load(ctx, tx, columns, texts); err != nil {
				return err
			}
			return db.Confirm(ctx, tx) // rows that were there already are restored only once the standby has them
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

func (d *archiveDay) load(ctx context.Context, tx pgx.Tx, columns []archiveColumn, lines []string) (archive.Loaded, error) {
	var l archive.Loaded
	var names, values, record []string
	for _, c := range columns {
		names = append(names, c.ident)
		if c.Type == "jsonb" { // of a record, null would be NULL
			values = append(values, `(j -> `+c.literal+`)::text::jsonb`)
			continue
		}
		values = append(values, `r.`+c.ident+`::`+c.Type)
		record = append(record, c.ident+` text`)
	}
	from := ` FROM s, json_to_record(j) AS r(` + strings.Join(record, ", ") + `)`
	var newest *time.Time
	err := tx.QueryRow(ctx, staged+`, stored AS (INSERT INTO decision_logs (`+strings.Join(names, ", ")+`) OVERRIDING SYSTEM VALUE
		SELECT `+strings.Join(values, ", ")+from+` ON CONFLICT (decision_id, ts) DO NOTHING RETURNING stored_at) SELECT count(*), max(stored_at) FROM stored`, lines).Scan(&l.Stored, &newest)
	if err != nil {
		return l, err
	}
	if err := d.behind(ctx, tx, newest); err != nil {
		return l, err
	}
	// A row that is another counts with the line that was archived: the hash proves that no line was passed over, the comparison says
	// how many are not in the table as they were. Payloads are read as JSON only where lines differ; OFFSET 0 keeps a line from being made twice.
	var sums scanTotal
	err = tx.QueryRow(ctx, staged+`, c AS MATERIALIZED (SELECT l, r.decision_id AS id, t.line, CASE WHEN t.line <> l
			THEN CASE WHEN t.raw_bytes IS NULL AND j -> 'raw_bytes' IS NULL THEN t.raw = (j -> 'raw')::text::jsonb ELSE coalesce(t.raw_bytes = (j ->> 'raw_bytes')::bytea, false) END END AS same
		FROM s, json_to_record(j) AS r(decision_id text, ts text)
		LEFT JOIN LATERAL (SELECT d.raw, d.raw_bytes, `+archiveLine(columns)+` AS line FROM `+archiveFrom(columns, "decision_logs")+`
			WHERE d.decision_id = r.decision_id AND d.ts = r.ts::timestamptz AND d.ts >= $2 AND d.ts < $3 OFFSET 0) AS t ON true)
		SELECT count(*) FILTER (WHERE line = l), count(*) FILTER (WHERE line <> l AND same), count(*) FILTER (WHERE line <> l AND NOT same),
			coalesce(array_agg(id) FILTER (WHERE line <> l AND NOT same), '{}'), `+sumsOf+`
		FROM (SELECT *, sha256(convert_to(CASE WHEN line <> l THEN l ELSE line END, 'UTF8')) AS h FROM c OFFSET 0) AS a`,
		lines, d.day.Time, d.day.Next().Time).Scan(append([]any{&l.Equal, &l.Again, &l.Differs, &l.Conflicts}, sums.into()...)...)
	if err != nil {
		return l, err
	}
	l.Equal = max(l.Equal-l.Stored, 0)
	l.Total, err = sums.total()
	return l, err
}
