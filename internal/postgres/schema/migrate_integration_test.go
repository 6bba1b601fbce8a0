//go:build integration

package schema_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
	"docket/migrations"
)

func TestMigrate_ManyAtOnce(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	// Slow enough that all of them are at it at the same time.
	d.Exec(t, `CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.1); END $$;
		CREATE EVENT TRIGGER slow ON ddl_command_start EXECUTE FUNCTION slow()`)
	entries, err := migrations.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		applied int
		err     error
	}
	const instances = 5
	results := make(chan result, instances)
	for range instances {
		db := open(t, d.URL, 0)
		go func() {
			n, err := schema.New(db.DB).Migrate(context.Background())
			results <- result{n, err}
		}()
	}
	sum := 0
	for range instances {
		r := <-results
		if r.err != nil {
			t.Errorf("migrate: %v", r.err)
		}
		sum += r.applied
	}
	same(t, sum, len(entries)+7) // and those that are no files
	db := open(t, d.URL, 0)
	same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
	n, err := schema.New(db.DB).Migrate(context.Background())
	if n != 0 || err != nil {
		t.Fatalf("once more: %d, %v", n, err)
	}
}

// TestMigrate_TimeoutsOfTheRole has a database with limits for those who look. A step that takes longer is done all the same.
func TestMigrate_TimeoutsOfTheRole(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	d.Exec(t, `CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); END $$;
		CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE TYPE') EXECUTE FUNCTION slow();
		ALTER DATABASE `+d.Name+` SET statement_timeout = '900ms'`)
	if n, err := schema.New(open(t, d.URL, 0).DB).Migrate(context.Background()); err != nil || n == 0 {
		t.Errorf("%d steps, %v", n, err)
	}
}

func TestMigrations_State(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	db := open(t, d.URL, 0)
	before, err := schema.New(db.DB).MigrationStatus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(before) == 0 || !before[0].Applied.IsZero() || before[0].Version != 1 || before[0].Name != "00001_decision_logs.sql" {
		t.Fatalf("before: %+v", before)
	}
	if _, err := schema.New(db.DB).Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	after, err := schema.New(db.DB).MigrationStatus(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range after {
		if m.Applied.IsZero() {
			t.Fatalf("not applied: %+v", m)
		}
	}
}

func TestMigrate_SaysWhichFailedAndWhy(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	d.Exec(t, `CREATE TABLE decision_logs (something int)`)
	_, err := schema.New(open(t, d.URL, 0).DB).Migrate(context.Background())
	var m *schema.MigrateError
	if !errors.As(err, &m) || m.Version != 1 {
		t.Fatalf("got %v", err)
	}
	wantCode(t, nil, err, "42P07")
	if strings.Contains(err.Error(), "already exists") {
		t.Fatalf("the server's words in %v", err)
	}
	_, err = schema.New(open(t, d.Role(t, ""), 0).DB).Migrate(context.Background())
	wantCode(t, nil, err, "42501")
	if hint := db.Hint(err); !strings.Contains(hint, "change the schema") {
		t.Fatalf("hint %q", hint)
	}
}

func TestMigrate_FirstSchemaOfTheSearchPath(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	d.Exec(t, `CREATE SCHEMA audit`)
	db := open(t, d.URL+"&search_path=audit", 0)
	if _, err := schema.New(db.DB).Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	save(t, db, row("a", noon, `{}`))
	var n int
	d.Query(t, `SELECT count(*) FROM audit.decision_logs`, &n)
	same(t, n, 1)
}

func TestMigrate_DownTakesBackUp(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	b, err := migrations.FS.ReadFile("00001_decision_logs.sql")
	if err != nil {
		t.Fatal(err)
	}
	up, down, ok := strings.Cut(string(b), "-- +goose Down")
	if !ok {
		t.Fatal("no way down")
	}
	d.Exec(t, down)
	d.Exec(t, up)
	same(t, d.Count(t), 0)
}
