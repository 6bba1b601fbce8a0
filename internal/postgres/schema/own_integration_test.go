//go:build integration

package schema_test

import (
	"context"
	"os"
	"regexp"
	"testing"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// TestMigrate_KeepsOwnTable: README names a statement that keeps a table from before the partitions as it is. The other
// migrations run, and the table takes decisions and absorbs them when they come again.
func TestMigrate_KeepsOwnTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	sql := regexp.MustCompile("`(INSERT INTO goose_db_version [^`]+)`").FindSubmatch(text)
	if sql == nil {
		t.Fatal("README.md does not say how to keep a table")
	}
	d := pgtest.NewPlain(t)
	pg := open(t, d.URL, 0)
	rows := []pipeline.Row{row("a", noon, `{}`), row("b", day(0), `{}`)}
	save(t, pg, rows...)
	s := schema.New(pg.DB)
	if _, err := s.MigrationStatus(context.Background()); err != nil { // makes the table of migrations, as the former release did
		t.Fatal(err)
	}
	d.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, true)`)
	d.Exec(t, string(sql[1]))
	if _, err := s.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	var kind string
	d.Query(t, `SELECT relkind::text FROM pg_class WHERE oid = 'decision_logs'::regclass`, &kind)
	same(t, kind, "r")
	if made, err := s.MakePartitions(context.Background(), 3); made != 0 || err != nil {
		t.Errorf("made %d partitions: %v", made, err)
	}
	save(t, pg, rows...)
	same(t, d.Count(t), 2)
}
