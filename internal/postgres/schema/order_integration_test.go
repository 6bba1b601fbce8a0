//go:build integration

package schema_test

import (
	"context"
	"testing"

	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// A new table compares ids by their bytes. One that has rows, or that others have views of, keeps its order, and the migration
// passes.
func TestMigrate_OrderOfIDs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, want string }{
		"new":       {"", "C"},
		"rows":      {`INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('a', now(), '{}', 't', 0, 0, 0)`, "default"},
		"view":      {`CREATE VIEW mine AS SELECT decision_id FROM decision_logs`, "default"},
		"generated": {`ALTER TABLE decision_logs ADD mine text GENERATED ALWAYS AS (upper(decision_id)) STORED`, "default"},
		"archived":  {`INSERT INTO decision_counts_left (day, left_at) VALUES ('2026-01-01Z', now())`, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewEmpty(t)
			db := open(t, d.URL, 0)
			migrate := func() {
				t.Helper()
				if _, err := schema.New(db.DB).Migrate(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			migrate()
			if c.before != "" {
				d.Exec(t, `ALTER TABLE decision_logs ALTER decision_id TYPE text COLLATE "default"; DELETE FROM goose_db_version WHERE version_id >= 27; `+c.before)
				migrate()
			}
			var order string
			var others int
			d.Query(t, `SELECT l.collname, (SELECT count(*) FROM pg_attribute p WHERE p.attname = 'decision_id' AND p.attcollation <> a.attcollation AND p.attrelid IN (SELECT relid FROM pg_partition_tree('decision_logs')))
				  FROM pg_attribute a JOIN pg_collation l ON l.oid = a.attcollation WHERE a.attrelid = 'decision_logs'::regclass AND a.attname = 'decision_id'`, &order, &others)
			if order != c.want || others != 0 {
				t.Errorf("ids are in the order %s, and %d partitions have another", order, others)
			}
		})
	}
}
