//go:build integration

package securedpg

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/testkit/testenv"
)

// TestGrants_ByOwner runs the files of docs as docs/install.md allows it: as the owner of the database, a login that
// may make roles without being a superuser. The tables belong to docket_migrate when it gives the rights.
func TestGrants_ByOwner(t *testing.T) {
	t.Parallel()
	d := &database{t: t, dsn: testenv.OwnPostgres(t).Database(t)}
	d.exec(`CREATE ROLE owner LOGIN CREATEROLE PASSWORD 'role'`)
	d.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO owner', current_database()); END $$`)
	owner := d.connect("owner")
	run := func(sql string) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%.80s: %v", sql, err)
		}
	}
	file := func(name string) {
		t.Helper()
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		run(strings.NewReplacer(`:"schema"`, `"public"`, `:'schema'`, `'public'`).Replace(string(text)))
	}
	file("grants.sql")
	run(`CREATE ROLE migrator LOGIN PASSWORD 'role' IN ROLE docket_migrate; ALTER ROLE migrator SET role = docket_migrate`)
	pg, err := db.Open(db.Config{URL: d.as("migrator")}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close()
	if _, err := schema.New(pg).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		file("grants.sql")
		file("desk-grants.sql")
	}
	if got := d.list(`SELECT r || ' ' || has_table_privilege(r, 'decision_logs', 'INSERT') || ' ' || has_table_privilege(r, 'decision_logs', 'DELETE')
		FROM unnest(ARRAY['docket_write', 'docket_read', 'docket_desk']) AS r`); strings.Join(got, ", ") != "docket_write true false, docket_read false false, docket_desk true false" {
		t.Errorf("the rights are %v", got)
	}
}
