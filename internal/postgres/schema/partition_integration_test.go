//go:build integration

package schema_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

// place is the partition that has a decision, empty where there is none.
func place(t testing.TB, d *pgtest.DB, id string) string {
	t.Helper()
	var where string
	d.Query(t, `SELECT coalesce((SELECT tableoid::regclass::text FROM decision_logs WHERE decision_id = '`+id+`'), '')`, &where)
	return where
}

func named(n int) string { return "decision_logs_p" + day(n).Format("20060102") }

// onward lets a migration continue after each step.
func onward(string) error { return nil }

func mustPartition(t testing.TB, db *store.Store, small int) {
	t.Helper()
	if err := schema.Partition(context.Background(), db.DB, small, false, onward); err != nil {
		t.Fatalf("partition: %v", err)
	}
}

// spread are decisions all over time, with where they belong when the small way was gone.
func spread() (rows []pipeline.Row, places map[string]string) {
	places = map[string]string{}
	for id, at := range map[string]time.Time{
		"ancient": time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), "yesterday": day(-1), "today": day(0), "tomorrow": day(1), "week": day(7),
		"later": day(30), "future": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		rows = append(rows, full(id, at, 10))
		switch id {
		case "ancient", "yesterday":
			places[id] = "decision_logs_before"
		case "later", "future":
			places[id] = "decision_logs_default"
		}
	}
	places["today"], places["tomorrow"], places["week"] = named(0), named(1), named(7)
	return rows, places
}

func TestPartition_EveryTimeHasItsPlace(t *testing.T) {
	t.Parallel()
	fresh := func(t *testing.T) *pgtest.DB { return pgtest.New(t) }
	small := func(t *testing.T) *pgtest.DB {
		d := pgtest.NewPlain(t)
		rows, _ := spread()
		save(t, open(t, d.URL, 0), rows...)
		mustPartition(t, open(t, d.URL, 0), 100)
		return d
	}
	for name, make := range map[string]func(t *testing.T) *pgtest.DB{"fresh": fresh, "small": small} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := make(t)
			db := open(t, d.URL, 0)
			rows, places := spread()
			save(t, db, rows...)
			for id, want := range places {
				if got := place(t, d, id); got != want {
					t.Errorf("%s lies in %q, want %q", id, got, want)
				}
			}
			for _, o := range save(t, db, rows...) {
				same(t, o, present)
			}
			same(t, d.Count(t), len(rows))
			rows[2].Log.Raw = []byte(`{"other":1}`)
			same(t, save(t, db, rows[2]), []pipeline.Outcome{pipeline.Conflicting})
		})
	}
}

// shape is all that a table is beside its rows, where the table is a single one or has partitions.
func shape(t testing.TB, d *pgtest.DB) string {
	t.Helper()
	var s string
	d.Query(t, `SELECT concat_ws(E'\n', 'owner ' || pg_get_userbyid(relowner), 'acl ' || (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(relacl) AS a),
		'comment ' || obj_description(oid, 'pg_class'),
		(SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attacl::text, col_description(attrelid, attnum)), E'\n' ORDER BY attname)
		   FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
		(SELECT string_agg(replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON '), E'\n' ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = c.oid),
		(SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), E'\n' ORDER BY conname) FROM pg_constraint WHERE conrelid = c.oid),
		(SELECT string_agg(s.relname || ' of ' || d.refobjid::regclass, ' ') FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' WHERE d.refobjid = c.oid AND deptype = 'a'))
		FROM pg_class c WHERE oid = 'decision_logs'::regclass`, &s)
	return s
}

// dressed is a table with what operators add to it.
func dressed(t *testing.T) *pgtest.DB {
	d := pgtest.NewPlain(t)
	d.Role(t, "SELECT, INSERT")
	d.Role(t, "SELECT (decision_id, ts)")
	d.Exec(t, `ALTER TABLE decision_logs DROP COLUMN bundles, ADD COLUMN bundles jsonb, ADD COLUMN tenant text DEFAULT 'us', ADD COLUMN seq bigserial,
			ADD COLUMN k text GENERATED ALWAYS AS (raw->>'k') STORED, ADD CONSTRAINT sane CHECK (tenant <> '');
		ALTER TABLE decision_logs SET (autovacuum_vacuum_scale_factor = 0.1);
		CREATE INDEX decision_logs_service ON decision_logs (service, ts DESC) INCLUDE (path) WHERE allowed;
		CREATE UNIQUE INDEX another ON decision_logs (source_topic, decision_id, ts);
		COMMENT ON TABLE decision_logs IS 'it''s ours'; COMMENT ON COLUMN decision_logs.tenant IS 'who';
		GRANT SELECT ON decision_logs TO PUBLIC; GRANT DELETE ON decision_logs TO CURRENT_USER WITH GRANT OPTION`)
	return d
}

func TestPartition_CarriesOverAdditions(t *testing.T) {
	t.Parallel()
	for name, small := range map[string]int{"small": 100, "large": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dressed(t)
			// The role that makes tables here gives a right to everybody; this table must not have it.
			d.Exec(t, `ALTER DEFAULT PRIVILEGES GRANT TRUNCATE ON TABLES TO PUBLIC`)
			db := open(t, d.URL, 0)
			save(t, db, full("a", day(0), 1), full("far", day(400), 1))
			was := shape(t, d)
			mustPartition(t, db, small)
			same(t, shape(t, d), was)
			var partitions, alike int
			d.Query(t, `SELECT count(*), count(*) FILTER (WHERE reloptions = '{autovacuum_vacuum_scale_factor=0.1}')
				FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'decision_logs'::regclass`, &partitions, &alike)
			if alike != partitions || partitions < 8 {
				t.Errorf("%d of %d partitions have the storage parameters", alike, partitions)
			}
			save(t, db, full("b", day(0), 1), full("far", day(400), 1))
			same(t, d.Count(t), 3)
			if err := schema.Partition(context.Background(), db.DB, 0, true, onward); err != nil {
				t.Fatalf("back: %v", err)
			}
			same(t, shape(t, d), was)
			same(t, d.Count(t), 3)
			save(t, db, full("c", day(400), 1))
		})
	}
}

func TestPartition_NamesObstacles(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"trigger": `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER odd BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION f()`,
		"rule":    `CREATE RULE odd AS ON UPDATE TO decision_logs DO ALSO NOTHING`,
		"policy":  `CREATE POLICY odd ON decision_logs`, "row-level security": `ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY; CREATE POLICY odd ON decision_logs`,
		"foreign key":     `CREATE TABLE p (id text PRIMARY KEY); ALTER TABLE decision_logs ADD CONSTRAINT odd FOREIGN KEY (service) REFERENCES p`,
		"referenced":      `CREATE TABLE p (i text, t timestamptz, CONSTRAINT odd FOREIGN KEY (i, t) REFERENCES decision_logs)`,
		"publication":     `CREATE PUBLICATION odd FOR TABLE decision_logs`,
		"all tables":      `CREATE PUBLICATION odd FOR ALL TABLES`,
		"view":            `CREATE VIEW odd AS SELECT path FROM decision_logs`,
		"function":        `CREATE FUNCTION odd(d decision_logs) RETURNS int LANGUAGE sql AS 'SELECT 1'`,
		"row type":        `CREATE TABLE odd (d decision_logs)`,
		"unique index":    `CREATE UNIQUE INDEX odd ON decision_logs (source_offset)`,
		"exclusion":       `ALTER TABLE decision_logs ADD CONSTRAINT odd EXCLUDE (path WITH =)`,
		"not valid":       `ALTER TABLE decision_logs ADD CONSTRAINT odd CHECK (path <> '') NOT VALID`,
		"NO INHERIT":      `ALTER TABLE decision_logs ADD CONSTRAINT odd CHECK (path <> '') NO INHERIT`,
		"identity column": `ALTER TABLE decision_logs ADD COLUMN odd int GENERATED ALWAYS AS IDENTITY`,
		"child":           `CREATE TABLE odd () INHERITS (decision_logs)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			pg := open(t, d.URL, 0)
			d.Exec(t, sql)
			_, err := schema.New(pg.DB).Migrate(context.Background())
			if err == nil {
				t.Fatal("it was migrated")
			}
			// The first migration finds its table there already; a database that has both is the usual one.
			d.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, true)`)
			for _, small := range []int{100, 0} {
				err := schema.Partition(context.Background(), pg.DB, small, false, onward)
				var met *schema.ObstacleError
				if !errors.As(err, &met) || len(met.Obstacles) == 0 || !strings.Contains(err.Error(), "(odd): ") && name != "row-level security" {
					t.Fatalf("got %v", err)
				}
			}
			_, err = schema.New(pg.DB).Migrate(context.Background())
			var m *schema.MigrateError
			if !errors.As(err, &m) || m.Version != 2 || !strings.Contains(db.Hint(err), "odd") {
				t.Fatalf("got %v, hint %q", err, db.Hint(err))
			}
			var kind string
			d.Query(t, `SELECT relkind::text || (SELECT count(*) FROM pg_constraint WHERE conrelid = c.oid AND conname = 'decision_logs_before_cut')
				FROM pg_class c WHERE oid = 'decision_logs'::regclass`, &kind)
			same(t, kind, "r0")
		})
	}
}

// A trigger that comes while the table is being read leaves nothing of Docket in the way.
func TestPartition_LateObstacle(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	db := open(t, d.URL, 0)
	save(t, db, row("far", day(400), `{}`))
	err := schema.Partition(context.Background(), db.DB, 0, false, func(step string) error {
		if step == "validated" {
			d.Exec(t, `CREATE VIEW odd AS SELECT path FROM decision_logs`)
		}
		return nil
	})
	var met *schema.ObstacleError
	if !errors.As(err, &met) {
		t.Fatalf("got %v", err)
	}
	same(t, d.Count(t), 1)
	save(t, db, row("a", day(300), `{}`))
}

func TestPartition_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	for _, at := range []string{"cut", "strays", "validated", "swapped", "days"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			db := open(t, d.URL, 0)
			rows, _ := spread()
			save(t, db, rows...)
			met := false
			err := schema.Partition(context.Background(), db.DB, 0, false, func(step string) error {
				if step == at {
					met = true
					return killed
				}
				return nil
			})
			if !met || !errors.Is(err, killed) {
				t.Fatalf("got %v", err)
			}
			save(t, db, row("meanwhile", day(0), `{}`))
			mustPartition(t, db, 0)
			mustPartition(t, db, 0)
			for _, o := range save(t, db, rows...) {
				same(t, o, present)
			}
			same(t, d.Count(t), len(rows)+1)
			same(t, place(t, d, "today"), "decision_logs_before")
			same(t, place(t, d, "week"), named(7))
			same(t, place(t, d, "future"), "decision_logs_default")
			same(t, worst(schema.New(db.DB).Check(context.Background(), db.Probe))["partitions"], schema.Warn) // for the strays
		})
	}
}

// A migration that was left off for so long that its cut has come starts again.
func TestPartition_PassedCut(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	db := open(t, d.URL, 0)
	d.Exec(t, fmt.Sprintf(`ALTER TABLE decision_logs ADD CONSTRAINT decision_logs_before_cut CHECK (ts < '%s') NOT VALID;
		CREATE TABLE decision_logs_strays (LIKE decision_logs);
		INSERT INTO decision_logs_strays (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index, stored_at) VALUES ('a', now(), '{}', '', 0, 0, 0, now())`,
		day(-1).Format(time.RFC3339)))
	mustPartition(t, db, 0)
	same(t, place(t, d, "a"), "decision_logs_before")
	save(t, db, row("b", day(0), `{}`))
}

func TestPartition_OfTheOperators(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	d.Exec(t, `ALTER TABLE decision_logs RENAME TO was; CREATE TABLE decision_logs (LIKE was INCLUDING DEFAULTS, PRIMARY KEY (decision_id, ts)) PARTITION BY RANGE (ts);
		CREATE TABLE decision_logs_2024 PARTITION OF decision_logs FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')`)
	db := open(t, d.URL, 0)
	mustPartition(t, db, 100)
	n, err := schema.New(db.DB).Patient().MakePartitions(context.Background(), 7)
	if n != 0 || err != nil {
		t.Fatalf("made %d, %v", n, err)
	}
	d.Query(t, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'decision_logs'::regclass`, &n)
	same(t, n, 1)
	save(t, db, row("a", noon, `{}`))
	if err := schema.Partition(context.Background(), db.DB, 0, true, onward); err != nil {
		t.Fatal(err)
	}
	same(t, d.Count(t), 1)
}
