package historydb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
)

// LetterArchives is the ledger of dead letters as archives need it; it is an [archive.LettersTable]. It needs the server itself or
// a session pooler, and a role that owns the ledger.
type LetterArchives struct{ a *Archives }

var _ archive.LettersTable = (*LetterArchives)(nil)

// NewLetterArchives gives the ledger of dead letters to be archived or restored.
func NewLetterArchives(db *db.DB) *LetterArchives { return &LetterArchives{NewArchives(db)} }

// lettersColumns are the columns of the line of a dead letter. Its group is in it whole, as another database numbers its groups
// otherwise.
var lettersColumns = []archive.Column{
	{Name: "dead_letter_id", Type: "text"}, {Name: "fingerprint", Type: "text"}, {Name: "kind", Type: "text"}, {Name: "code", Type: "text"}, {Name: "table", Type: "text"},
	{Name: "column", Type: "text"}, {Name: "constraint", Type: "text"}, {Name: "group_message", Type: "text"}, {Name: "group_first_seen", Type: "timestamp with time zone"},
	{Name: "path", Type: "text"}, {Name: "decision_id", Type: "text"}, {Name: "decision_ts", Type: "timestamp with time zone"}, {Name: "origin_topic", Type: "text"},
	{Name: "origin_partition", Type: "integer"}, {Name: "origin_offset", Type: "bigint"}, {Name: "origin_index", Type: "integer"},
	{Name: "origin_timestamp", Type: "timestamp with time zone"}, {Name: "found_topic", Type: "text"}, {Name: "found_partition", Type: "integer"},
	{Name: "found_offset", Type: "bigint"}, {Name: "found_at", Type: "timestamp with time zone"}, {Name: "key", Type: "bytea"}, {Name: "value", Type: "bytea"},
	{Name: "headers", Type: "jsonb"}, {Name: "message", Type: "text"}, {Name: "attempts", Type: "integer"}, {Name: "edited", Type: "boolean"},
	{Name: "first_failed_at", Type: "timestamp with time zone"}, {Name: "last_failed_at", Type: "timestamp with time zone"},
	{Name: "seen_at", Type: "timestamp with time zone"}, {Name: "changed_at", Type: "timestamp with time zone"}, {Name: "changed_by", Type: "text"},
	{Name: "changed_act", Type: "text"}, {Name: "why", Type: "text"}, {Name: "job_id", Type: "bigint"}, {Name: "parent_id", Type: "text"},
	{Name: "decisions", Type: "jsonb"},
}

const (
	letterDaysSQL = `SELECT (d.changed_at AT TIME ZONE 'UTC')::date::timestamp AT TIME ZONE 'UTC', count(*), sum(octet_length(d.value))::int8 FROM dead_letters d
 WHERE ` + ledgerdb.OnlyCopySQL + ` AND d.changed_at < $1 GROUP BY 1 ORDER BY 1`
	lettersWaitingSQL = `SELECT count(*) FROM dead_letters d WHERE ` + ledgerdb.OnlyCopySQL + ` AND d.changed_at >= $1 AND d.changed_at < $2`

	// letterLineSQL is a line, of dead_letters d and its group g, with the names and the order of lettersColumns.
	letterLineSQL = `(SELECT row_to_json(r)::text FROM (SELECT d.dead_letter_id, g.fingerprint, g.kind, g.code, g."table", g."column", g."constraint", g.message AS group_message,
	g.first_seen AS group_first_seen, d.path, d.decision_id, d.decision_ts, d.origin_topic, d.origin_partition, d.origin_offset, d.origin_index, d.origin_timestamp,
	d.found_topic, d.found_partition, d.found_offset, d.found_at, d.key, d.value, d.headers, d.message, d.attempts, d.edited, d.first_failed_at, d.last_failed_at, d.seen_at,
	d.changed_at, d.changed_by, d.changed_act, d.why, d.job_id, d.parent_id,
	(SELECT jsonb_build_object('refused', h.refused, 'places', h.places, 'ids', h.decision_ids, 'times', h.decision_ts) FROM dead_letter_decisions h
	  WHERE h.dead_letter_id = d.dead_letter_id) AS decisions) AS r)`

	lettersNoteSQL = `UPDATE dead_letters d SET archived_in = $1::text FROM unnest($2::text[], $3::bytea[]) AS l(id, hash), dead_letter_groups g
 WHERE d.dead_letter_id = l.id AND g.group_id = d.group_id AND ` + ledgerdb.OnlyCopySQL + ` AND sha256(convert_to(` + letterLineSQL + `, 'UTF8')) = l.hash`

	// letterRecordSQL are lines $1 as rows r, with the columns of lettersColumns.
	letterRecordSQL = ` FROM unnest($1::text[]) AS l, json_to_record(l::json) AS r(dead_letter_id text, fingerprint text, kind text, code text, "table" text, "column" text,
	"constraint" text, group_message text, group_first_seen timestamptz, path text, decision_id text, decision_ts timestamptz, origin_topic text, origin_partition int,
	origin_offset bigint, origin_index int, origin_timestamp timestamptz, found_topic text, found_partition int, found_offset bigint, found_at timestamptz, key bytea, value bytea,
	headers jsonb, message text, attempts int, edited boolean, first_failed_at timestamptz, last_failed_at timestamptz, seen_at timestamptz, changed_at timestamptz,
	changed_by text, changed_act text, why text, job_id bigint, parent_id text, decisions jsonb)`

	lettersGroupsSQL = `INSERT INTO dead_letter_groups (fingerprint, kind, code, "table", "column", "constraint", message, first_seen)
SELECT DISTINCT ON (r.fingerprint) r.fingerprint, r.kind, r.code, r."table", r."column", r."constraint", r.group_message, r.group_first_seen` + letterRecordSQL + `
 WHERE NOT EXISTS (SELECT FROM dead_letter_groups g WHERE g.fingerprint = r.fingerprint) ORDER BY r.fingerprint ON CONFLICT (fingerprint) DO NOTHING`

	// lettersLoadSQL enters the letters that are not there. The line and the audit say how a letter was closed. The new row says who restored
	// it, and is kept for as long as a letter that was closed now.
	lettersLoadSQL = `INSERT INTO dead_letters (dead_letter_id, state, group_id, path, decision_id, decision_ts, origin_topic, origin_partition, origin_offset, origin_index, origin_timestamp,
	found_topic, found_partition, found_offset, found_at, key, value, headers, message, attempts, edited, first_failed_at, last_failed_at, seen_at,
	changed_by, changed_act, why, job_id, parent_id, archived_in)
SELECT r.dead_letter_id, 'RESOLVED', g.group_id, r.path, r.decision_id, r.decision_ts, r.origin_topic, r.origin_partition, r.origin_offset, r.origin_index, r.origin_timestamp,
	r.found_topic, r.found_partition, r.found_offset, r.found_at, r.key, r.value, r.headers, r.message, r.attempts, r.edited, r.first_failed_at, r.last_failed_at, r.seen_at,
	$2::text, 'restored', 'from ' || $3::text, r.job_id, r.parent_id, $3::text` + letterRecordSQL + ` JOIN dead_letter_groups g USING (fingerprint)
 ORDER BY r.dead_letter_id ON CONFLICT (dead_letter_id) DO NOTHING`

	// lettersHeldSQL enters what letters that hold several decisions say of each. The year 0 of JSON is 1 BC in Postgres.
	lettersHeldSQL = `INSERT INTO dead_letter_decisions (dead_letter_id, refused, places, decision_ids, decision_ts, hashes)
SELECT r.dead_letter_id, (r.decisions->>'refused')::int, ARRAY(SELECT e::int FROM jsonb_array_elements_text(r.decisions->'places') WITH ORDINALITY AS t(e, n) ORDER BY n),
	ARRAY(SELECT e FROM jsonb_array_elements_text(r.decisions->'ids') WITH ORDINALITY AS t(e, n) ORDER BY n),
	ARRAY(SELECT (CASE WHEN e LIKE '0000-%' THEN '0001' || substr(e, 5) || ' BC' ELSE e END)::timestamptz FROM jsonb_array_elements_text(r.decisions->'times') WITH ORDINALITY AS t(e, n) ORDER BY n),
	ARRAY(SELECT hashtextextended(e, 0) FROM jsonb_array_elements_text(r.decisions->'ids') WITH ORDINALITY AS t(e, n) ORDER BY n)` + letterRecordSQL + `
 JOIN dead_letters d USING (dead_letter_id) WHERE r.decisions IS NOT NULL ON CONFLICT (dead_letter_id) DO NOTHING`

	lettersThereSQL = `SELECT count(*) FILTER (WHERE same), count(*) FILTER (WHERE NOT same), coalesce(array_agg(id) FILTER (WHERE NOT same), '{}')
  FROM (SELECT d.dead_letter_id AS id, d.value IS NOT DISTINCT FROM r.value AS same` + letterRecordSQL + ` JOIN dead_letters d USING (dead_letter_id)) AS t`
)

// Days are those on which letters were closed that are in no archive.
func (t *LetterArchives) Days(ctx context.Context, before archive.Day) ([]archive.LettersHeld, error) {
	conn, err := t.a.connect(ctx)
	if err != nil {
		return nil, t.a.failed("list the days of dead letters", err)
	}
	defer db.HangUp(ctx, conn.PgConn())
	rows, err := conn.Query(ctx, letterDaysSQL, before.Time)
	if err != nil {
		return nil, t.a.failed("list the days of dead letters", err)
	}
	days, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (archive.LettersHeld, error) {
		var h archive.LettersHeld
		var at time.Time
		err := row.Scan(&at, &h.Letters, &h.Bytes)
		h.Day = archive.DayOf(at)
		return h, err
	})
	return days, t.a.failed("list the days of dead letters", err)
}

// Open takes a day of the ledger for this process alone.
func (t *LetterArchives) Open(ctx context.Context, day archive.Day) (archive.LettersSession, error) {
	conn, err := t.a.taken(ctx, "dead_letters", day)
	if err != nil {
		return nil, err
	}
	return &letterDay{of: t.a, conn: conn, day: day}, nil
}

// letterDay is a day of the ledger that this process alone works at, for as long as its connection lasts.
type letterDay struct {
	of   *Archives
	conn *pgx.Conn
	day  archive.Day
}

// Close lets the day go.
func (d *letterDay) Close() { db.HangUp(context.Background(), d.conn.PgConn()) }

// Columns are what a line consists of.
func (d *letterDay) Columns() []archive.Column { return lettersColumns }

// Source says which database it is.
func (d *letterDay) Source(ctx context.Context) (archive.Source, error) {
	return d.of.source(ctx, d.conn, 0)
}

// Waiting is how many letters of the day are in no archive.
func (d *letterDay) Waiting(ctx context.Context) (n int64, err error) {
	err = d.conn.QueryRow(ctx, lettersWaitingSQL, d.day.Time, d.day.Next().Time).Scan(&n)
	return n, d.of.failed("count dead letters", err)
}

// Read hands out the letters of the day that are in no archive.
func (d *letterDay) Read(ctx context.Context, each func(line []byte) error) error {
	out := &binaryRows{each: func(columns [][]byte) error { return each(columns[0]) }}
	_, err := d.conn.PgConn().CopyTo(ctx, out, `COPY (SELECT convert_to(`+letterLineSQL+`, 'UTF8') FROM dead_letters d JOIN dead_letter_groups g USING (group_id) WHERE `+ledgerdb.OnlyCopySQL+
		` AND d.changed_at >= '`+d.day.Format(time.RFC3339)+`' AND d.changed_at < '`+d.day.Next().Format(time.RFC3339)+`' ORDER BY d.dead_letter_id) TO STDOUT (FORMAT binary)`)
	if out.refused != nil {
		return out.refused
	}
	if err == nil && !out.ended {
		err = errclass.As(&db.AnswerError{Problem: "COPY ended without its end"}, errclass.CodeProtocol)
	}
	return d.of.failed("read dead letters", err)
}

// Note writes down which archive has the letters of these lines.
func (d *letterDay) Note(ctx context.Context, in, by string, lines [][]byte) (noted int64, err error) {
	ids, hashes := make([]string, len(lines)), make([][]byte, len(lines))
	for i, line := range lines {
		var letter struct {
			ID string `json:"dead_letter_id"`
		}
		if json.Unmarshal(line, &letter) != nil {
			return 0, &archive.BrokenError{Archive: in, Problem: "a line is not valid JSON"}
		}
		hash := sha256.Sum256(line)
		ids[i], hashes[i] = letter.ID, hash[:]
	}
	err = db.Durably(ctx, d.conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('docket.actor', $1, true)`, db.Text(by)); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, lettersNoteSQL, in, ids, hashes)
		noted = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, d.of.failed("note what was archived", err)
	}
	return noted, nil
}

// Load enters letters that are not in the ledger.
func (d *letterDay) Load(ctx context.Context, in, by string, columns []archive.Column, lines [][]byte) (archive.LettersLoaded, error) {
	var l archive.LettersLoaded
	for _, c := range columns {
		if !slices.Contains(lettersColumns, c) {
			return l, &archive.CannotError{Why: "the ledger has no column " + db.Identifier(c.Name) + " of type " + db.Identifier(c.Type) + ", which the archive has", Do: "restore with the version of docket that wrote it, or a later one"}
		}
	}
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = string(line)
	}
	err := db.Durably(ctx, d.conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lettersGroupsSQL, texts); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, lettersLoadSQL, texts, db.Text(by), in)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lettersHeldSQL, texts); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, lettersThereSQL, texts).Scan(&l.Equal, &l.Differs, &l.Conflicts); err != nil {
			return err
		}
		l.Stored = tag.RowsAffected()
		l.Equal -= l.Stored
		return db.Confirm(ctx, tx) // letters that were there already are restored only once the standby has them
	})
	if err != nil {
		return archive.LettersLoaded{}, d.of.failed("enter dead letters", err)
	}
	return l, nil
}

// source says which database it is, and which table of it by its oid; 0: none of its own.
func (a *Archives) source(ctx context.Context, conn *pgx.Conn, oid uint32) (archive.Source, error) {
	var system, database string
	err := conn.QueryRow(ctx, `SELECT (SELECT system_identifier::text FROM pg_control_system()), d.oid::text || '/' || n.nspname
		FROM pg_database d, pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE datname = current_database() AND c.oid = 'decision_logs'::regclass`).Scan(&system, &database)
	if err != nil {
		return archive.Source{}, a.failed("read what database it is", err)
	}
	id := sha256.Sum256([]byte(system + "/" + database))
	s := archive.Source{ID: hex.EncodeToString(id[:3])}
	if oid != 0 {
		s.Partition = fmt.Sprintf("%s/%s/%d", system, database, oid)
	}
	return s, nil
}
