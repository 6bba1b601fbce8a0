package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
)

// Level is how a check came out.
type Level uint8

const (
	// OK is as it should be.
	OK Level = iota
	// Warn means that it works, but an operator should know.
	Warn
	// Fail means that Docket could not store, or what it stores could be lost.
	Fail
)

// String is the level as `consumer check` prints it.
func (l Level) String() string { return [...]string{"ok", "warn", "fail"}[l] }

// Check is one thing that was looked at.
type Check struct {
	Name   string // connection, server, read_only, table, columns, identity, collation, triggers, grants, rights, partitions, ledger, durability, write
	Level  Level
	Detail string // the finding, in Docket's words
	Hint   string // the remedy, empty where all is well
}

// oldestServer is the first with all that the migrations use: bloom filters of BRIN, and CREATE OR REPLACE TRIGGER.
const oldestServer = 140000

// Check examines the database before it is gone live with, and changes nothing: server, table, columns, unique
// index, grants of the current role, durability, and whether a known-good row is taken. It stops where nothing further
// can be said. probe asks whether the table takes a good row of that time.
func (s *Schema) Check(ctx context.Context, probe func(ctx context.Context, at time.Time) error) []Check {
	ctx, cancel := context.WithTimeout(ctx, 2*s.db.Timeout())
	defer cancel()
	cc := s.db.ConnConfig()
	cc.ValidateConnect = nil // a read-only node is to be reported, not refused
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return []Check{failed("connection", s.db.Clean("connect", err))}
	}
	defer db.HangUp(ctx, conn.PgConn())

	checks := []Check{{Name: "connection", Detail: "the database answers"}}
	for _, check := range []func(context.Context, *pgx.Conn) (Check, error){checkServer, checkReadOnly, checkDurability, checkTable} {
		c, err := check(ctx, conn)
		if err != nil {
			return append(checks, failed("catalog", db.Clean("read the catalog", err)))
		}
		checks = append(checks, c)
	}
	if checks[len(checks)-1].Level == Fail {
		return checks
	}
	for _, check := range []func(context.Context, *pgx.Conn) (Check, error){checkColumns, checkIdentity, checkCollation, checkTriggers, checkGrants, checkRights, checkPartitions, checkLedger} {
		c, err := check(ctx, conn)
		if err != nil {
			return append(checks, failed("catalog", db.Clean("read the catalog", err)))
		}
		checks = append(checks, c)
	}
	for _, some := range []struct {
		act   string
		check func(context.Context, *pgx.Conn) (*Check, error)
	}{{"read the publications", checkPublications}, {"read the note of the archive", checkArchive}, {"read the mark of the states", checkStates}} {
		switch c, err := some.check(ctx, conn); {
		case err != nil:
			return append(checks, failed("catalog", db.Clean(some.act, err)))
		case c != nil:
			checks = append(checks, *c)
		}
	}
	if err := probe(ctx, time.Now()); err != nil {
		return append(checks, failed("write", err))
	}
	return append(checks, Check{Name: "write", Detail: "a known-good row is taken"})
}

func failed(name string, err error) Check {
	return Check{Name: name, Level: Fail, Detail: err.Error(), Hint: db.Hint(err)}
}

func checkServer(ctx context.Context, conn *pgx.Conn) (Check, error) {
	var number int
	var encoding string
	if err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`).Scan(&number, &encoding); err != nil {
		return Check{}, err
	}
	return judgeServer(number, encoding), nil
}

func judgeServer(number int, encoding string) Check {
	c := Check{Name: "server", Detail: fmt.Sprintf("PostgreSQL %d.%d", number/10000, number%10000)}
	if number < oldestServer {
		c.Level, c.Hint = Fail, fmt.Sprintf("use PostgreSQL %d or later: `consumer migrate` fails on an earlier one", oldestServer/10000)
		return c
	}
	if encoding != "UTF8" {
		c.Level, c.Detail = Warn, c.Detail+", and a database with the encoding "+db.Identifier(encoding)
		c.Hint = "a decision with a character that the database cannot hold becomes a dead letter (22P05): use a database that was created with ENCODING 'UTF8'"
	}
	return c
}

func checkReadOnly(ctx context.Context, conn *pgx.Conn) (Check, error) {
	var readOnly, standby bool
	err := conn.QueryRow(ctx, `SELECT current_setting('transaction_read_only') = 'on', pg_is_in_recovery()`).Scan(&readOnly, &standby)
	switch {
	case err != nil:
		return Check{}, err
	case standby:
		return Check{Name: "read_only", Level: Fail, Detail: "the node is a standby", Hint: db.HintOf("25006")}, nil
	case readOnly:
		return Check{Name: "read_only", Level: Fail, Detail: "default_transaction_read_only is on", Hint: db.HintOf("25006")}, nil
	}
	return Check{Name: "read_only", Detail: "the node takes writes"}, nil
}

// checkDurability asks whether a committed row survives a crash.
func checkDurability(ctx context.Context, conn *pgx.Conn) (Check, error) {
	var fsync, pages, commit string
	err := conn.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')`).
		Scan(&fsync, &pages, &commit)
	switch {
	case err != nil:
		return Check{}, err
	case fsync == "off":
		return Check{Name: "durability", Level: Warn, Detail: "fsync is off", Hint: "set fsync = on; otherwise a crash of the server can lose or corrupt stored rows"}, nil
	case pages == "off":
		return Check{Name: "durability", Level: Warn, Detail: "full_page_writes is off", Hint: "set full_page_writes = on; otherwise a crash can corrupt rows, unless the file system writes whole pages"}, nil
	case commit == "off":
		return Check{Name: "durability", Level: Warn, Detail: "synchronous_commit is off",
			Hint: "Docket turns it on for its own writes; a crash of the server can lose other commits"}, nil
	}
	return Check{Name: "durability", Detail: "what is committed survives a crash"}, nil
}

func checkTable(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const name = "table"
	var kind, persistence, schema string
	err := conn.QueryRow(ctx, `
		SELECT c.relkind::text, c.relpersistence::text, n.nspname::text
		  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		 WHERE c.oid = to_regclass('decision_logs')`).Scan(&kind, &persistence, &schema)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Check{Name: name, Level: Fail, Detail: "there is no table decision_logs on the search_path", Hint: db.HintOf("42P01")}, nil
	case err != nil:
		return Check{}, err
	case kind != "r" && kind != "p":
		return Check{Name: name, Level: Warn, Detail: "decision_logs is not a table", Hint: "use a plain table; Docket does not support a view or a foreign table"}, nil
	case persistence != "p":
		return Check{Name: name, Level: Fail, Detail: "decision_logs is unlogged or temporary: a crash empties it", Hint: "ALTER TABLE decision_logs SET LOGGED"}, nil
	}
	return Check{Name: name, Detail: "decision_logs in the schema " + schema}, nil
}

// columnTypes are the columns of the table as Docket writes them.
var columnTypes = map[string]string{
	"decision_id": "text", "ts": "timestamp with time zone", "path": "text", "allowed": "boolean", "requested_by": "text",
	"req_id": "bigint", "opa_id": "text", "opa_version": "text", "service": "text", "labels": "jsonb", "bundles": "jsonb",
	"raw": "jsonb", "source_topic": "text", "source_partition": "integer", "source_offset": "bigint", "source_index": "integer",
	"raw_sha256": "bytea", "raw_bytes": "bytea", "unfaithful": "text[]", "uploaded_by": "text", "edited_audit_id": "bigint", "stored_at": "timestamp with time zone",
}

// optionalColumns may be NULL in a good row.
var optionalColumns = map[string]bool{
	"path": true, "allowed": true, "requested_by": true, "req_id": true, "opa_id": true, "opa_version": true, "service": true,
	"labels": true, "bundles": true, "raw_sha256": true, "raw_bytes": true, "unfaithful": true, "uploaded_by": true, "edited_audit_id": true,
}

func checkColumns(ctx context.Context, conn *pgx.Conn) (Check, error) {
	rows, err := conn.Query(ctx, `
		SELECT attname::text, format_type(atttypid, NULL), attnotnull, atthasdef OR attidentity <> ''
		  FROM pg_attribute WHERE attrelid = to_regclass('decision_logs') AND attnum > 0 AND NOT attisdropped
		 ORDER BY attnum`)
	if err != nil {
		return Check{}, err
	}
	var wrong, strict []string
	missing := len(columnTypes)
	var column, kind string
	var notNull, filled bool
	_, err = pgx.ForEachRow(rows, []any{&column, &kind, &notNull, &filled}, func() error {
		want, ours := columnTypes[column]
		if ours {
			missing--
		}
		switch {
		case ours && kind != want:
			wrong = append(wrong, fmt.Sprintf("%s is %s and should be %s", db.Identifier(column), kind, want))
		case !ours && notNull && !filled:
			wrong = append(wrong, db.Identifier(column)+" is NOT NULL without a default")
		case notNull && optionalColumns[column]:
			strict = append(strict, db.Identifier(column))
		}
		return nil
	})
	switch {
	case err != nil:
		return Check{}, err
	case missing > 0:
		wrong = append(wrong, fmt.Sprintf("%d of Docket's columns are missing", missing))
	}
	switch {
	case len(wrong) > 0:
		return Check{Name: "columns", Level: Fail, Detail: strings.Join(wrong, "; "), Hint: "run `consumer migrate`; undo changes made by hand"}, nil
	case len(strict) > 0:
		return Check{Name: "columns", Level: Warn, Detail: "NOT NULL: " + strings.Join(strict, ", "),
			Hint: "OPA may leave these out; such decisions would be dead-lettered"}, nil
	}
	return Check{Name: "columns", Detail: fmt.Sprintf("all %d have their types", len(columnTypes))}, nil
}

func checkIdentity(ctx context.Context, conn *pgx.Conn) (Check, error) {
	var there bool
	err := conn.QueryRow(ctx, `
		SELECT EXISTS (
		  SELECT FROM pg_index x
		   WHERE x.indrelid = to_regclass('decision_logs') AND x.indisunique AND x.indisvalid AND x.indimmediate
		     AND x.indpred IS NULL AND x.indexprs IS NULL
		     AND (SELECT array_agg(a.attname::text ORDER BY a.attname)
		            FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k(num, n)
		            JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.num
		           WHERE k.n <= x.indnkeyatts) = ARRAY['decision_id', 'ts'])`).Scan(&there)
	switch {
	case err != nil:
		return Check{}, err
	case !there:
		return Check{Name: "identity", Level: Fail, Detail: "there is no unique index on exactly (decision_id, ts)", Hint: db.HintOf("42P10")}, nil
	}
	return Check{Name: "identity", Detail: "(decision_id, ts) is unique"}, nil
}

// checkTriggers names the triggers that can swallow a row, or alter it, before it is stored, or remove it afterwards. Docket
// has none on the table.
func checkTriggers(ctx context.Context, conn *pgx.Conn) (Check, error) {
	c := Check{Name: "triggers", Detail: "no trigger alters or removes new rows"}
	var before, after []string
	// Of tgtype: 2 BEFORE, 4 INSERT, 64 INSTEAD OF.
	err := conn.QueryRow(ctx, `
		SELECT coalesce(array_agg(DISTINCT tgname::text ORDER BY tgname::text) FILTER (WHERE tgtype & 2 = 2), '{}'),
		       coalesce(array_agg(DISTINCT tgname::text ORDER BY tgname::text) FILTER (WHERE tgtype & 66 = 0), '{}') FROM pg_trigger
		 WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 4 = 4
		   AND (tgrelid = to_regclass('decision_logs') OR pg_partition_root(tgrelid) = to_regclass('decision_logs'))`).
		Scan(&before, &after)
	if err != nil {
		return Check{}, err
	}
	const (
		alters  = "a trigger that returns NULL, or alters decision_id or ts, makes dead letters of good decisions; one that alters raw makes conflicts of their copies"
		removes = "a row that such a trigger deletes makes a dead letter of a good decision, and to look for rows before each commit takes time; copy rows elsewhere, and leave them in decision_logs"
	)
	var details, hints []string
	for _, of := range []struct {
		when, hint string
		found      []string
	}{
		{"BEFORE INSERT: ", alters, before},
		{"AFTER INSERT: ", removes, after},
	} {
		if len(of.found) == 0 {
			continue
		}
		for i := range of.found {
			of.found[i] = db.Identifier(of.found[i])
		}
		details, hints = append(details, of.when+strings.Join(of.found, ", ")), append(hints, of.hint)
	}
	if len(details) > 0 {
		c.Level, c.Detail, c.Hint = Warn, strings.Join(details, "; "), strings.Join(hints, "; ")
	}
	return c, nil
}
