// Package pgtest gives a test its own real Postgres database, and the faults that a database can have: codes raised
// by a trigger, killed sessions, read-only nodes, locks, slowness and a connection that is cut at a chosen point. It
// knows nothing about the tests; production code does not import it.
package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/migrations"
)

// ServerVariable names the environment variable with the URL of a server for tests, for a superuser.
const ServerVariable = "DOCKET_TEST_DATABASE_URL"

// StartServer returns the URL of a server, for a superuser, if the environment names none. Only test files with the
// build tag integration set it, for example to testenv.Postgres.
var StartServer func(t testing.TB) string

// patience limits each act of the harness.
const patience = time.Minute

// DB is a database that belongs to one test and is dropped at its end. Its schema is up to date.
type DB struct {
	// URL is for a superuser.
	URL  string
	Name string

	sessions Sessions
}

// New makes a database. A test without a server fails.
func New(t testing.TB) *DB {
	t.Helper()
	awaitDay()
	server := serverURL(t)
	template := ensureTemplate(t, server)
	db := create(t, server, template)
	t.Cleanup(func() {
		if _, err := exec(server, `DROP DATABASE IF EXISTS `+pgx.Identifier{db.Name}.Sanitize()+` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	return db
}

// NewEmpty makes a database without a schema.
func NewEmpty(t testing.TB) *DB {
	t.Helper()
	awaitDay()
	server := serverURL(t)
	db := create(t, server, "template0")
	t.Cleanup(func() {
		if _, err := exec(server, `DROP DATABASE IF EXISTS `+pgx.Identifier{db.Name}.Sanitize()+` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	return db
}

// NewPlain makes a database whose table has no partitions, as before the migration. It is for tests that need such a
// table.
func NewPlain(t testing.TB) *DB {
	t.Helper()
	db := NewEmpty(t)
	b, err := migrations.FS.ReadFile("00001_decision_logs.sql")
	if err != nil {
		t.Fatalf("read a migration: %v", err)
	}
	up, _, _ := strings.Cut(string(b), "-- +goose Down")
	db.Exec(t, up)
	db.Exec(t, migrations.HashColumn+";"+migrations.UnfaithfulColumns+";"+migrations.UploaderColumn+";"+migrations.EditedColumn) // everything that storing needs besides the table
	return db
}

// nearMidnight is the last part of a day, in which no test begins. It is longer than any test that depends on the
// present day.
const nearMidnight = 3 * time.Minute

// awaitDay waits for the next day, in UTC, if this one is about to end. The table has partitions by day, from today
// on, so a test must not see two days.
func awaitDay() { time.Sleep(untilDay(time.Now())) }

// untilDay returns how long a test has to wait for a day that lasts.
func untilDay(now time.Time) time.Duration {
	now = now.UTC()
	left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	if left > nearMidnight {
		return 0
	}
	return left
}

func serverURL(t testing.TB) string {
	t.Helper()
	if u := os.Getenv(ServerVariable); u != "" {
		return u
	}
	if StartServer != nil {
		return StartServer(t)
	}
	t.Fatalf("no Postgres server for this test: set %s to the URL of one, with a superuser", ServerVariable)
	return ""
}

func create(t testing.TB, server, template string) *DB {
	t.Helper()
	db := &DB{Name: "docket_test_" + strings.ToLower(rand.Text())}
	sql := `CREATE DATABASE ` + pgx.Identifier{db.Name}.Sanitize() + ` TEMPLATE ` + pgx.Identifier{template}.Sanitize()
	if _, err := exec(server, sql); err != nil {
		t.Fatalf("create a test database: %v", err)
	}
	db.URL = withDatabase(t, server, db.Name)
	return db
}

// templatePrefix begins the names of templates; their day, in UTC, ends them.
const templatePrefix = "docket_template_"

// ensureTemplate makes the database that others are copied from. There is one for each state of the migrations and
// each day, because its partitions begin at that day. It stays on the server for the next run. Older ones are
// dropped.
func ensureTemplate(t testing.TB, server string) string {
	t.Helper()
	today := time.Now().UTC()
	name := templatePrefix + migrationsHash(t) + today.Format("_20060102")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, withDatabase(t, server, "postgres")) // an advisory lock belongs to one database
	if err != nil {
		t.Fatalf("connect to the Postgres server for tests: %v", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// One at a time, because packages are tested in parallel processes.
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext('docket test template'))`); err != nil {
		t.Fatalf("lock the template: %v", err)
	}
	var ready bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)`, name).Scan(&ready); err != nil {
		t.Fatalf("look for the template: %v", err)
	}
	if ready {
		return name
	}
	dropTemplates(t, conn, today.AddDate(0, 0, -1)) // yesterday's may be in use
	quoted := pgx.Identifier{name}.Sanitize()
	for _, sql := range []string{`DROP DATABASE IF EXISTS ` + quoted, `CREATE DATABASE ` + quoted + ` TEMPLATE template0`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("make the template: %v", err)
		}
	}
	migrate(t, withDatabase(t, server, name))
	if _, err := conn.Exec(ctx, `ALTER DATABASE `+quoted+` IS_TEMPLATE true`); err != nil {
		t.Fatalf("finish the template: %v", err)
	}
	return name
}

// dropTemplates drops the templates of days before one.
func dropTemplates(t testing.TB, conn *pgx.Conn, before time.Time) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT datname FROM pg_database WHERE datname ~ ('^' || $1 || '[0-9a-f]+_\d{8}$') AND right(datname, 8) < $2`,
		templatePrefix, before.Format("20060102"))
	if err != nil {
		t.Fatalf("list the templates: %v", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("list the templates: %v", err)
	}
	for _, name := range names {
		quoted := pgx.Identifier{name}.Sanitize()
		for _, sql := range []string{`ALTER DATABASE ` + quoted + ` IS_TEMPLATE false`, `DROP DATABASE ` + quoted + ` WITH (FORCE)`} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("drop a template of another day: %v", err)
			}
		}
	}
}

func migrate(t testing.TB, url string) {
	t.Helper()
	db, err := store.Open(db.Config{URL: url}, zerolog.Nop())
	if err != nil {
		t.Fatalf("open the template: %v", err)
	}
	defer db.Close()
	if _, err := schema.New(db.DB).Migrate(t.Context()); err != nil {
		t.Fatalf("migrate the template: %v", err)
	}
}

func migrationsHash(t testing.TB) string {
	t.Helper()
	hash := sha256.New()
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatalf("list the migrations: %v", err)
	}
	for _, name := range names {
		b, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatalf("read a migration: %v", err)
		}
		fmt.Fprintf(hash, "%s\n%s\n", name, b)
	}
	fmt.Fprint(hash, migrations.Function, migrations.Swap, migrations.ReadIndexes, migrations.HashColumn, migrations.UnfaithfulColumns, migrations.UploaderColumn, migrations.EditedColumn, migrations.Edits)
	return hex.EncodeToString(hash.Sum(nil)[:6])
}

func withDatabase(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL", ServerVariable)
	}
	u.Path = "/" + name
	return u.String()
}

func exec(url, sql string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // also in Cleanup, where the test's context is done
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	tag, err := conn.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// Exec runs SQL in a session that is as new and never read-only, and returns the number of affected rows. Without
// arguments it may be several statements, separated by semicolons.
func (db *DB) Exec(t testing.TB, sql string, args ...any) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience) // also in Cleanup, where the test's context is done
	defer cancel()
	var n int64
	if err := db.sessions.With(ctx, t, db.passing(t), func(conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, sql, args...)
		n = tag.RowsAffected()
		return err
	}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// passer is the application name of the harness's sessions for one statement. Such a session may end after it was
// closed, or be kept for the next statement, so tests do not count it.
const passer = "pgtest"

// passing returns the URL of writable for one statement.
func (db *DB) passing(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(db.writable(t))
	if err != nil {
		t.Fatalf("the database's URL: %v", err)
	}
	q := u.Query()
	q.Set("application_name", passer)
	u.RawQuery = q.Encode()
	return u.String()
}

// writable returns a URL for the harness itself, whatever fault the test has set.
func (db *DB) writable(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatalf("the database's URL: %v", err)
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "off")
	u.RawQuery = q.Encode()
	return u.String()
}

// Query reads one row into dest.
func (db *DB) Query(t testing.TB, sql string, dest ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := db.sessions.With(ctx, t, db.passing(t), func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(dest...) }); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Count returns the number of decisions in the table.
func (db *DB) Count(t testing.TB) int {
	t.Helper()
	var n int
	db.Query(t, `SELECT count(*) FROM decision_logs`, &n)
	return n
}

// Role makes a role that may log in, connect and use grants ("SELECT, INSERT"; empty for none), and returns its URL.
// The role is dropped with the database.
func (db *DB) Role(t testing.TB, grants string) string {
	t.Helper()
	role := "role_" + strings.ToLower(rand.Text())
	quoted := pgx.Identifier{role}.Sanitize()
	db.Exec(t, `CREATE ROLE `+quoted+` LOGIN PASSWORD 'role'`)
	t.Cleanup(func() {
		if _, err := exec(db.writable(t), `DROP OWNED BY `+quoted+`; DROP ROLE `+quoted); err != nil {
			t.Errorf("drop the role: %v", err)
		}
	})
	if grants != "" {
		db.Exec(t, `GRANT `+grants+` ON decision_logs TO `+quoted)
	}
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatalf("the database's URL: %v", err)
	}
	u.User = url.UserPassword(role, "role")
	return u.String()
}
