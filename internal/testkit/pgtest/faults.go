package pgtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Fault is the error of a trigger. Text goes into every field in which a server can quote a row.
type Fault struct {
	Code                      string // SQLSTATE
	Constraint, Column, Table string // named in the error where not empty
	Text                      string // message, detail and hint; "raised by a test" where empty
}

// RaiseMarked makes the table refuse each row whose decision asks for it: {"raise":"23514"}, with optional
// "raise_constraint", "raise_column" and "raise_table". The server's message, detail and hint quote the whole row.
func (db *DB) RaiseMarked(t testing.TB) {
	t.Helper()
	db.trigger(t, "pgtest_raise", `
		IF NEW.raw ? 'raise' THEN
			RAISE EXCEPTION USING
				ERRCODE = NEW.raw->>'raise', MESSAGE = 'refused ' || NEW.raw::text, DETAIL = 'Failing row contains ' || NEW::text,
				HINT = NEW.raw::text, CONSTRAINT = coalesce(NEW.raw->>'raise_constraint', ''),
				COLUMN = coalesce(NEW.raw->>'raise_column', ''), TABLE = coalesce(NEW.raw->>'raise_table', '');
		END IF;
		RETURN NEW;`)
}

// RaiseAll makes the table refuse every row until Calm.
func (db *DB) RaiseAll(t testing.TB, f Fault) {
	t.Helper()
	if f.Text == "" {
		f.Text = "raised by a test"
	}
	db.trigger(t, "pgtest_raise", fmt.Sprintf(
		`RAISE EXCEPTION USING ERRCODE = %s, MESSAGE = %s, DETAIL = %[2]s || NEW::text, HINT = %[2]s, CONSTRAINT = %s, COLUMN = %s, TABLE = %s;`,
		quote(f.Code), quote(f.Text), quote(f.Constraint), quote(f.Column), quote(f.Table)))
}

// Slow makes every row take d.
func (db *DB) Slow(t testing.TB, d time.Duration) {
	t.Helper()
	db.trigger(t, "pgtest_slow", fmt.Sprintf(`PERFORM pg_sleep(%f); RETURN NEW;`, d.Seconds()))
}

// BeforeInsert runs a PL/pgSQL body, which must end with RETURN or RAISE, for every row before it is inserted.
func (db *DB) BeforeInsert(t testing.TB, body string) {
	t.Helper()
	db.trigger(t, "pgtest_before", body)
}

// Calm removes all triggers of this package.
func (db *DB) Calm(t testing.TB) {
	t.Helper()
	db.Exec(t, dropping("pgtest_raise", "pgtest_slow", "pgtest_before"))
}

// dropping drops triggers with their functions, if there are any. It locks the table first, then its partitions, like
// writers do. A DROP locks in the other order, so it and a writer could wait for each other.
func dropping(names ...string) string {
	drops := ""
	for _, name := range names {
		drops += "DROP FUNCTION IF EXISTS " + name + " CASCADE;\n"
	}
	return `DO $$ BEGIN
			IF (SELECT relkind IN ('r', 'p') FROM pg_class WHERE oid = to_regclass('decision_logs'))
				AND EXISTS (SELECT FROM pg_proc WHERE proname IN ('` + strings.Join(names, "', '") + `')) THEN LOCK TABLE decision_logs; END IF;
		END $$;
		` + drops
}

func (db *DB) trigger(t testing.TB, name, body string) {
	t.Helper()
	db.Exec(t, dropping(name)+strings.ReplaceAll(`
		CREATE FUNCTION NAME() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN `+body+` END $body$;
		CREATE TRIGGER NAME BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION NAME();`, "NAME", name))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// KillSessions ends every session of the database and returns their number. It spares the harness's sessions for one
// statement. Those that work end first: the end of another may give them the lock that they wait for, and they may be
// done before they are told to end.
func (db *DB) KillSessions(t testing.TB) int {
	t.Helper()
	var n int
	db.Query(t, `SELECT count(pg_terminate_backend(pid)) FROM (
	             SELECT pid FROM pg_stat_activity
	              WHERE datname = current_database() AND application_name <> '`+passer+`' AND backend_type = 'client backend'
	              ORDER BY state = 'active' DESC OFFSET 0) AS s`, &n)
	return n
}

// ReadOnly makes new sessions read-only, as on a node that lost a failover, or reverts that. Open sessions do not
// change: see KillSessions.
func (db *DB) ReadOnly(t testing.TB, on bool) {
	t.Helper()
	db.Exec(t, `ALTER DATABASE `+pgx.Identifier{db.Name}.Sanitize()+fmt.Sprintf(` SET default_transaction_read_only = %t`, on))
}

// Lock locks the whole table until unlock is called, or the test ends.
func (db *DB) Lock(t testing.TB) (unlock func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	conn, err := pgx.Connect(ctx, db.writable(t))
	if err != nil {
		cancel()
		t.Fatalf("connect: %v", err)
	}
	unlock = func() {
		_ = conn.Close(ctx)
		cancel()
	}
	t.Cleanup(unlock)
	if _, err := conn.Exec(ctx, `BEGIN; LOCK TABLE decision_logs IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatalf("lock the table: %v", err)
	}
	return unlock
}

// Sessions waits until exactly n other sessions of the database run a statement that contains text. So a test knows
// that something is running.
func (db *DB) Sessions(t testing.TB, n int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.passing(t))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for {
		var seen int
		err := conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%' || $1 || '%'`, text).Scan(&seen)
		if err != nil {
			t.Fatalf("wait for %d sessions: %v", n, err)
		}
		if seen == n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
