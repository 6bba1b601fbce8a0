//go:build integration

package securedpg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/testenv"
)

// database has the roles of docs/grants.sql and docs/desk-grants.sql, and a login for each.
type database struct {
	t     *testing.T
	dsn   string
	world *world
}

func (d *database) connect(login string) *pgx.Conn {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.as(login))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (d *database) exec(sql string) {
	d.t.Helper()
	if _, err := d.connect("").Exec(d.t.Context(), sql); err != nil {
		d.t.Fatalf("%.100s: %v", sql, err)
	}
}

func (d *database) list(sql string) []string {
	d.t.Helper()
	rows, err := d.connect("").Query(d.t.Context(), sql)
	if err != nil {
		d.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// as returns the URL of a login; for "" that of the superuser.
func (d *database) as(login string) string {
	u, err := url.Parse(d.dsn)
	if err != nil {
		d.t.Fatal(err)
	}
	if login != "" {
		u.User = url.UserPassword(login, "role")
	}
	return u.String()
}

// run runs a file of docs as psql does.
func (d *database) run(file string) {
	d.t.Helper()
	text, err := os.ReadFile("../../docs/" + file)
	if err != nil {
		d.t.Fatal(err)
	}
	d.exec(strings.NewReplacer(`:"schema"`, `"public"`, `:'schema'`, `'public'`).Replace(string(text)))
}

func (d *database) command(login string, args ...string) (string, int) {
	d.t.Helper()
	w := *d.world
	w.env = append(slices.DeleteFunc(slices.Clone(w.env), func(s string) bool { return strings.HasPrefix(s, "DOCKET_DATABASE_URL_FILE=") }), "DOCKET_DATABASE_URL="+d.as(login))
	return w.command(args...)
}

func TestRoles_LeastRights(t *testing.T) {
	t.Parallel()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	d := &database{t, testenv.Postgres(t).Database(t), newWorld(t, "")}
	d.world.kafka.Values(t, topic, 0, "[]", `{"decision_id":"late"}`) // so that where-is finds the place of a row
	d.run("grants.sql")
	d.exec(`CREATE ROLE docket_nobody;
		CREATE ROLE migrator LOGIN PASSWORD 'role' IN ROLE docket_migrate; ALTER ROLE migrator SET role = docket_migrate;
		CREATE ROLE writer LOGIN PASSWORD 'role' IN ROLE docket_write; CREATE ROLE reader LOGIN PASSWORD 'role' IN ROLE docket_read;
		CREATE SCHEMA others; CREATE TABLE others.secrets (s text)`)
	began := time.Now()
	step := func(name string) { t.Logf("%s: %v", name, time.Since(began).Round(time.Millisecond)) }
	if out, code := d.command("migrator", "migrate"); code != 0 {
		t.Fatalf("migrate: %d\n%s", code, out)
	}
	for range 2 { // running it twice changes nothing
		d.run("grants.sql")
		d.run("desk-grants.sql")
	}
	d.exec(`CREATE ROLE clerk LOGIN PASSWORD 'role' IN ROLE docket_desk, docket_desk_reader`)
	d.declared(t)
	if out, code := d.command("migrator", "migrate"); code != 0 || !strings.Contains(out, "up to date") {
		t.Errorf("migrate once more: %d\n%s", code, out)
	}
	step("declared")
	d.writes(t)
	step("writes")
	d.declared(t) // new days have changed nothing
	d.reads(t)
	step("reads")
	d.drops(t)
	d.refusals(t)
	step("refusals")
	d.checks(t)
	step("checks")
}

// row makes a decision.
func row(id string, at time.Time, raw string) pipeline.Row {
	return pipeline.Row{Topic: topic, Offset: 1, Log: &decision.Log{ID: id, Time: at, Raw: []byte(raw)}}
}

// writes does the work of the consumer and the replayer as docket_write.
func (d *database) writes(t *testing.T) {
	db, err := store.Open(db.Config{URL: d.as("writer")}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Microsecond)
	d.exec(`DO $$ DECLARE p text; BEGIN FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'decision_logs'::regclass AND inhrelid::regclass::text ~ '_p[0-9]{8}$' LOOP
		EXECUTE 'DROP TABLE ' || p; END LOOP; END $$`)
	if made, err := schema.New(db.DB).MakePartitions(ctx, 3); err != nil || made == 0 {
		t.Fatalf("make partitions: %d, %v", made, err)
	}
	many := make([]pipeline.Row, 300) // by COPY
	for i := range many {
		many[i] = row(fmt.Sprintf("many-%d", i), now.Add(time.Duration(i%72)*time.Hour), `{"a":1}`)
	}
	for _, step := range []struct {
		rows []pipeline.Row
		want pipeline.Outcome
	}{
		{many, pipeline.Stored},
		{many, pipeline.Present},
		{[]pipeline.Row{row("many-0", now, `{"a":2}`)}, pipeline.Conflicting},
		{[]pipeline.Row{row("old", now.AddDate(-1, 0, 0), `{}`), row("far", now.AddDate(3, 0, 0), `{}`)}, pipeline.Stored},
	} {
		for _, fresh := range []bool{false, true} {
			out, err := db.Store(ctx, step.rows, fresh)
			if err != nil || !fresh && out[0] != step.want {
				t.Errorf("store %s: %v, %v; want %v", step.rows[0].Log.ID, out, err, step.want)
			}
		}
	}
	if err := db.Probe(ctx, now); err != nil {
		t.Errorf("probe: %v", err)
	}
	if refused, err := db.Refusals(ctx, many[:2], now); err != nil || refused[0] != nil {
		t.Errorf("refusals: %v, %v", refused, err)
	}
	// A day that was made after the grants takes rows and shows them, through the table.
	d.exec(`SELECT decision_logs_make_partitions(20)`)
	late := row("late", now.AddDate(0, 0, 19), `{}`)
	if out, err := db.Store(ctx, []pipeline.Row{late}, false); err != nil || out[0] != pipeline.Stored {
		t.Errorf("a day made later: %v, %v", out, err)
	}
	if found, err := db.LookupID(ctx, "late"); err != nil || len(found) != 1 {
		t.Errorf("look up: %v, %v", found, err)
	}
	d.inserts(t)
}

// inserts does it for a table without COPY, such as one with row security.
func (d *database) inserts(t *testing.T) {
	d.exec(`ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY; CREATE POLICY everything ON decision_logs USING (true) WITH CHECK (true)`)
	defer d.exec(`DROP POLICY everything ON decision_logs; ALTER TABLE decision_logs DISABLE ROW LEVEL SECURITY`)
	db, err := store.Open(db.Config{URL: d.as("writer")}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows := []pipeline.Row{row("by insert", time.Now(), `{}`), row("by insert too", time.Now(), `{}`)}
	if out, err := db.Store(t.Context(), rows, false); err != nil || out[0] != pipeline.Stored {
		t.Errorf("without COPY: %v, %v", out, err)
	}
}

// reads does the work of verify, where-is and people as docket_read, and so as the desk's reader.
func (d *database) reads(t *testing.T) {
	d.exec(`CREATE ROLE auditor LOGIN PASSWORD 'role' IN ROLE docket_read, docket_desk_reader`)
	for _, login := range []string{"reader", "auditor"} {
		// No consumer ran, so that nothing is committed.
		if out, code := d.command(login, "verify"); code != 1 || !strings.Contains(out, "nothing was checked") || strings.Contains(out, "42501") {
			t.Errorf("verify as %s: %d\n%s", login, code, out)
		}
		if out, code := d.command(login, "where-is", "late"); code != 0 || !strings.Contains(out, "decision-logs/0/1") {
			t.Errorf("where-is as %s: %d\n%s", login, code, out)
		}
		d.asks(t, login)
		conn := d.connect(login)
		for _, sql := range []string{`SELECT count(*) FROM decision_logs`, `SELECT service, allowed, count(*) FROM decision_logs GROUP BY 1, 2`, `SELECT count(*) FROM decision_logs_default`} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Errorf("%s: %s: %v", login, sql, err)
			}
		}
	}
}

// asks runs each question of the reader with a role's rights.
func (d *database) asks(t *testing.T, login string) {
	db, err := store.Open(db.Config{URL: d.as(login)}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, r := t.Context(), historydb.NewReader(db.DB)
	now := time.Now()
	for name, f := range map[string]reader.Filter{
		"all": {}, "by path": {Paths: []string{"a/b", "a/*"}, Services: []string{"a"}}, "by who asked": {RequestedBy: []string{"10.0.0.1"}},
		"by what it holds": {Since: now.Add(-24 * time.Hour), Verdicts: []reader.Verdict{reader.Undefined}, Labels: map[string]string{"a": "b"}, Matches: []reader.Match{{In: "input"}}},
	} {
		for _, oldest := range []bool{false, true} {
			if _, err := r.Search(ctx, f, reader.Page{Limit: 10, Oldest: oldest, Payload: true}); err != nil {
				t.Errorf("%s: search %s: %v", login, name, err)
			}
		}
	}
	found, err := r.ByID(ctx, "late")
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: by id: %d, %v", login, len(found), err)
	}
	if _, err := reader.Why(ctx, r, found[0], reader.Question{Neighbours: 3, SameInput: true}); err != nil {
		t.Errorf("%s: why: %v", login, err)
	}
	_, tail, err := r.Follow(ctx, reader.Filter{}, reader.Tail{}, 10, true)
	if err == nil {
		_, _, err = r.Follow(ctx, reader.Filter{}, tail, 10, true)
	}
	if err != nil {
		t.Errorf("%s: follow: %v", login, err)
	}
	for _, byPath := range []bool{false, true} {
		if _, err := r.Stats(ctx, reader.StatsQuery{Since: now.Add(-48 * time.Hour).Truncate(time.Hour), Step: time.Hour, ByPath: byPath}); err != nil {
			t.Errorf("%s: stats: %v", login, err)
		}
	}
}

// drops runs retention as docket_migrate.
func (d *database) drops(t *testing.T) {
	day := d.list(`SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'decision_logs'::regclass AND inhrelid::regclass::text ~ '_p[0-9]{8}$'`)[0]
	if _, err := d.connect("migrator").Exec(t.Context(), `DROP TABLE `+day); err != nil {
		t.Errorf("retention: %v", err)
	}
}

// refusals tries, with each role, acts outside its work.
func (d *database) refusals(t *testing.T) {
	everywhere := []string{
		`DELETE FROM decision_logs`, `UPDATE decision_logs SET path = ''`, `TRUNCATE decision_logs`, `DROP TABLE decision_logs`, `ALTER TABLE decision_logs ADD x int`,
		`CREATE TABLE mine ()`, `CREATE TABLE public.mine ()`, `CREATE SCHEMA mine`, `CREATE ROLE mine`, `CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
		`CREATE EXTENSION file_fdw`, `DROP FUNCTION decision_logs_make_partitions(int)`, `CREATE INDEX ON decision_logs (path)`,
		`CREATE TRIGGER t BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
		`CREATE RULE r AS ON INSERT TO decision_logs DO INSTEAD NOTHING`, `DO $$ BEGIN LOCK TABLE decision_logs IN ACCESS EXCLUSIVE MODE; END $$`,
		`COPY (SELECT 1) TO PROGRAM 'true'`, `COPY decision_logs FROM PROGRAM 'true'`, `COPY (SELECT 1) TO '/tmp/x'`, `COPY decision_logs FROM '/etc/passwd'`,
		`SELECT pg_read_file('/etc/passwd')`, `SELECT pg_ls_dir('/')`, `SELECT lo_import('/etc/passwd')`, `SELECT lo_export(1, '/tmp/x')`, `SELECT pg_reload_conf()`,
		`SELECT * FROM pg_authid`, `SELECT * FROM others.secrets`, `INSERT INTO others.secrets VALUES ('x')`,
		`SET ROLE postgres`, `SET ROLE docket_migrate`, `SET SESSION AUTHORIZATION postgres`, `ALTER SYSTEM SET fsync = off`, `ALTER ROLE docket_read SUPERUSER`,
		`GRANT docket_migrate TO docket_write`, `ALTER DATABASE postgres SET fsync = off`, `SET session_replication_role = replica`,
	}
	day := d.list(`SELECT min(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'decision_logs'::regclass AND inhrelid::regclass::text ~ '_p[0-9]{8}$'`)[0]
	for login, more := range map[string][]string{
		"writer": {`SELECT * FROM goose_db_version`, `SELECT * FROM dead_letters`, `INSERT INTO dead_letters DEFAULT VALUES`, `SELECT FROM ` + day, `INSERT INTO ` + day + ` DEFAULT VALUES`, `DELETE FROM decision_logs_default`},
		"reader": {`INSERT INTO decision_logs (decision_id) VALUES ('x')`, `SELECT decision_logs_make_partitions(1)`, `SELECT * FROM dead_letters`, `SELECT FROM ` + day},
		"clerk": {`UPDATE dead_letter_audit SET actor = 'x'`, `SELECT decision_logs_make_partitions(1)`, `INSERT INTO dead_letter_audit (dead_letter_id, act, actor, why, attempts, login) VALUES ('x', 'closed', 'x', 'x', 0, 'x')`,
			`DELETE FROM dead_letters`, `DELETE FROM dead_letter_outbox`, `DELETE FROM dead_letter_counts`, `INSERT INTO dead_letter_days DEFAULT VALUES`, `UPDATE dead_letter_job_ends SET n = 0`,
			`DELETE FROM decision_counts`, `INSERT INTO decision_counts DEFAULT VALUES`, `DELETE FROM decision_counts_days`, `UPDATE decision_counts_mark SET stored_before = 'infinity'`,
			`SELECT decision_counts_keep('{}')`, `SELECT decision_counts_most()`, `DELETE FROM decision_counts_names`, `SELECT dead_letters_keep()`, `CREATE OR REPLACE FUNCTION dead_letters_keep() RETURNS interval LANGUAGE sql AS 'SELECT NULL::interval'`},
	} {
		conn := d.connect(login)
		for _, sql := range append(slices.Clone(everywhere), more...) {
			_, err := conn.Exec(t.Context(), sql)
			if e := (*pgconn.PgError)(nil); !errors.As(err, &e) || e.Code != "42501" {
				t.Errorf("%s: %s: %v", login, sql, err)
			}
		}
	}
	migrator := d.connect("migrator")
	for _, sql := range []string{
		`CREATE SCHEMA mine`, `CREATE ROLE mine`, `COPY (SELECT 1) TO PROGRAM 'true'`, `SELECT pg_read_file('/etc/passwd')`, `SELECT * FROM others.secrets`, `DROP TABLE others.secrets`,
		`SET ROLE postgres`, `ALTER SYSTEM SET fsync = off`, `SELECT * FROM pg_authid`, `CREATE EXTENSION file_fdw`, `DROP SCHEMA public CASCADE`,
	} {
		_, err := migrator.Exec(t.Context(), sql)
		if e := (*pgconn.PgError)(nil); !errors.As(err, &e) || e.Code != "42501" {
			t.Errorf("migrator: %s: %v", sql, err)
		}
	}
	d.shadows(t)
}

// shadows puts objects in the way of the function that works with its owner's rights.
func (d *database) shadows(t *testing.T) {
	conn := d.connect("writer")
	for _, sql := range []string{
		`CREATE TEMP TABLE decision_logs (ts timestamptz) PARTITION BY RANGE (ts)`,
		`CREATE TEMP TABLE pg_class (oid oid, relname name)`, `CREATE TEMP TABLE pg_inherits (inhrelid oid, inhparent oid)`,
		`CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE public.taken (); RETURN '2001-01-01'; END $$`,
		`CREATE FUNCTION pg_temp.format(text, VARIADIC "any") RETURNS text LANGUAGE internal AS 'text_format'`, // refused, which is just as good
		`CREATE FUNCTION pg_temp.quote_ident(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE public.taken (); RETURN $1; END $$`,
		`SET search_path = pg_temp, public, pg_catalog`, `SET lock_timeout = 0`, `SET DateStyle = 'SQL, DMY'`,
	} {
		_, _ = conn.Exec(t.Context(), sql)
	}
	before := d.list(`SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'public.decision_logs'::regclass ORDER BY 1`)
	if _, err := conn.Exec(t.Context(), `SELECT public.decision_logs_make_partitions(21)`); err != nil {
		t.Errorf("make partitions: %v", err)
	}
	after := d.list(`SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'public.decision_logs'::regclass ORDER BY 1`)
	if len(after) <= len(before) || len(after) > len(before)+3 {
		t.Errorf("the days were %v and are %v", before, after)
	}
	if taken := d.list(`SELECT relname::text FROM pg_class WHERE relname = 'taken' OR relname ~ '_p2001'`); len(taken) > 0 {
		t.Errorf("what stood in the way was called: %v", taken)
	}
	if of := d.list(`SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'public.decision_logs'::regclass`); !slices.Equal(of, []string{"docket_migrate"}) {
		t.Errorf("the days belong to %v", of)
	}
}

// checks runs `consumer check` for a role's rights.
func (d *database) checks(t *testing.T) {
	for _, c := range []struct {
		name, login, sql, undo string
		want                   []string
	}{
		{"as it should be", "writer", ``, ``, []string{"ok    database grants", "ok    database rights", "ok    database ledger"}},
		{"a superuser", "", ``, ``, []string{"warn  database rights", "superuser"}},
		{"the owner", "migrator", ``, ``, []string{"warn  database rights", "owns decision_logs"}},
		{"too much", "writer", `GRANT UPDATE, TRUNCATE ON decision_logs TO docket_write`, `REVOKE UPDATE, TRUNCATE ON decision_logs FROM docket_write`, []string{"warn  database rights", "UPDATE", "TRUNCATE"}},
		{"may run programs", "writer", `GRANT pg_execute_server_program TO docket_write`, `REVOKE pg_execute_server_program FROM docket_write`, []string{"warn  database rights", "pg_execute_server_program"}},
		{"no INSERT", "writer", `REVOKE INSERT ON decision_logs FROM docket_write`, `GRANT INSERT ON decision_logs TO docket_write`, []string{"fail  database grants", "lacks INSERT"}},
		{"no function", "writer", `REVOKE EXECUTE ON FUNCTION decision_logs_make_partitions(int) FROM docket_write`, `GRANT EXECUTE ON FUNCTION decision_logs_make_partitions(int) TO docket_write`,
			[]string{"warn  database grants", "EXECUTE on decision_logs_make_partitions"}},
		{"the desk's", "clerk", ``, ``, []string{"ok    database grants", "ok    database ledger", "may work with it"}},
		{"the desk's, with one right less", "clerk", `REVOKE UPDATE ON dead_letters FROM docket_desk`, `GRANT UPDATE ON dead_letters TO docket_desk`, []string{"warn  database ledger", "UPDATE on dead_letters"}},
		{"the desk's, with the rights of before", "clerk", `GRANT DELETE ON dead_letters, decision_counts TO docket_desk; GRANT UPDATE ON decision_counts_mark TO docket_desk`,
			`REVOKE DELETE ON dead_letters, decision_counts FROM docket_desk; REVOKE UPDATE ON decision_counts_mark FROM docket_desk`,
			[]string{"warn  database ledger", "DELETE on dead_letters", "DELETE on decision_counts", "UPDATE on decision_counts_mark"}},
		{"the desk's, with a function less", "clerk", `REVOKE EXECUTE ON FUNCTION dead_letters_compact() FROM docket_desk`, `GRANT EXECUTE ON FUNCTION dead_letters_compact() TO docket_desk`,
			[]string{"warn  database ledger", "EXECUTE on dead_letters_compact()"}},
		{"a table of the desk's is gone", "writer", `ALTER TABLE dead_letter_notes RENAME TO elsewhere`, `ALTER TABLE elsewhere RENAME TO dead_letter_notes`, []string{"fail  database ledger", "dead_letter_notes"}},
	} {
		if c.sql != "" {
			d.exec(c.sql)
		}
		out, _ := d.command(c.login, "check")
		for _, want := range c.want {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s: no %q in\n%s", c.name, want, out)
			}
		}
		if c.undo != "" {
			d.exec(c.undo)
		}
	}
}
