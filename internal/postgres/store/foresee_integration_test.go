//go:build integration

package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/testkit/pgtest"
)

// many are n rows that differ in offset, path and document; the ids are not in the order of the rows.
func many(n int) []pipeline.Row {
	rows := make([]pipeline.Row, n)
	for i := range rows {
		rows[i] = full(fmt.Sprintf("id-%05d", i*7919%n), noon.Add(time.Duration(i)*time.Second), 0)
		rows[i].Offset = int64(i)
		rows[i].Log.Path.V = fmt.Sprintf("shop/%d/allow", i)
		rows[i].Log.Raw = fmt.Appendf(nil, `{"n":%d,"s":"x%d","words":"do-not-tell"}`, i, i)
		if i%5 == 4 {
			rows[i].Log.Path.Valid = false
		}
	}
	return rows
}

const partitioned = `DROP TABLE decision_logs;
	CREATE TABLE decision_logs (decision_id text, ts timestamptz, path text, allowed boolean, requested_by text, req_id bigint,
		opa_id text, opa_version text, service text, labels jsonb, bundles jsonb, raw jsonb NOT NULL, source_topic text,
		source_partition int, source_offset bigint, source_index int, raw_sha256 bytea, raw_bytes bytea, unfaithful text[], uploaded_by text, stored_at timestamptz DEFAULT now(),
		PRIMARY KEY (decision_id, ts)) PARTITION BY RANGE (ts);
	CREATE TABLE early PARTITION OF decision_logs FOR VALUES FROM (MINVALUE) TO ('2024-05-01 12:00:20Z');
	CREATE TABLE late PARTITION OF decision_logs FOR VALUES FROM ('2024-05-01 12:00:20Z') TO (MAXVALUE);`

// Foresee names exactly the rows that are refused, for every kind of CHECK that can be foreseen. It names none for the
// others, and the refusals are the same.
func TestForesee_AsTheCheckRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ddl   string
		bad   []int
		blind bool
		plain bool // a table of partitions cannot have it
	}{
		"one column":         {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (source_offset % 10 <> 3)`, bad: []int{3, 13, 23, 33}},
		"several columns":    {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (hashint8(source_offset + source_partition) IS NOT NULL AND (source_offset <> 7 OR path IS NULL))`, bad: []int{7}},
		"NULL passes":        {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (path NOT LIKE '%/1_/%')`, bad: []int{10, 11, 12, 13, 15, 16, 17, 18}},
		"a document":         {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK ((raw->>'n')::int NOT IN (0, 39) AND labels ? 'id')`, bad: []int{0, 39}},
		"a time":             {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (ts < '2024-05-01 12:00:38Z')`, bad: []int{38, 39}},
		"not valid":          {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (source_offset <> 3) NOT VALID`, bad: []int{3}},
		"all others alike":   {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (opa_id = 'docket-probe' OR allowed AND req_id = 77 AND service = 'shop' AND requested_by <> '' AND opa_id <> '' AND opa_version <> '' AND bundles <> '[]' AND source_topic <> '' AND source_partition = 3 AND source_index = 1 AND uploaded_by <> '' AND decision_id <> 'id-00000')`, bad: []int{0}},
		"of the parent":      {ddl: partitioned + `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (source_offset % 20 <> 3)`, bad: []int{3, 23}},
		"of one partition":   {ddl: partitioned + `ALTER TABLE early ADD CONSTRAINT c CHECK (source_offset % 20 <> 3)`, bad: []int{3}},
		"of two partitions":  {ddl: partitioned + `ALTER TABLE early ADD CONSTRAINT c CHECK (source_offset <> 3); ALTER TABLE late ADD CONSTRAINT c CHECK (source_offset <> 24)`, bad: []int{3, 24}},
		"varchar":            {ddl: `ALTER TABLE decision_logs ALTER COLUMN path TYPE varchar(99); ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (path <> 'shop/3/allow')`, bad: []int{3}},
		"a whole row":        {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK ((decision_logs).source_offset <> 3 OR decision_logs IS NULL)`, bad: []int{3}, blind: true, plain: true},
		"a column of theirs": {ddl: `ALTER TABLE decision_logs ADD COLUMN tenant text DEFAULT 'us', ADD CONSTRAINT c CHECK (tenant IS NULL OR source_offset <> 3)`, bad: []int{3}, blind: true},
		"a function that raises": {ddl: `CREATE FUNCTION f(n bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
			IF n = 4 THEN RAISE EXCEPTION 'no' USING ERRCODE = '22023'; END IF; RETURN n <> 3; END $$;
			ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (f(source_offset))`, bad: []int{3, 4}, blind: true},
		"a function that writes": {ddl: `CREATE TABLE seen (n bigint); CREATE FUNCTION f(n bigint) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
			INSERT INTO seen VALUES (n); RETURN n <> 3; END $$;
			ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (f(source_offset))`, bad: []int{3}, blind: true},
		"another constraint": {ddl: `ALTER TABLE decision_logs ADD CONSTRAINT c CHECK (true), ADD CONSTRAINT d CHECK (source_offset <> 3)`, bad: []int{3}, blind: true},
		"a trigger": {ddl: `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.source_offset = 3 THEN RAISE EXCEPTION 'no' USING ERRCODE = '23514', CONSTRAINT = 'c'; END IF; RETURN NEW; END $$;
			CREATE TRIGGER c BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION f()`, bad: []int{3}, blind: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := pgtest.New
			if c.plain {
				made = pgtest.NewPlain
			}
			d := made(t)
			d.Exec(t, c.ddl)
			db := open(t, d.Role(t, "SELECT, INSERT"), 0)
			rows := many(40)
			ctx := context.Background()
			foreseen, err := db.Foresee(ctx, rows, "c")
			if name != "a function that raises" && name != "a function that writes" && err != nil {
				t.Fatal(err)
			}
			want := c.bad
			if c.blind {
				want = nil
			}
			same(t, foreseen, want)
			for _, probe := range []time.Time{{}, noon.Add(20 * time.Second)} {
				refused, err := db.Refusals(ctx, rows, probe)
				if err != nil {
					t.Fatal(err)
				}
				var bad []int
				for i, err := range refused {
					if err != nil {
						bad = append(bad, i)
					}
				}
				same(t, bad, c.bad)
				if name != "a function that raises" && name != "another constraint" {
					wantPlace(t, refused[bad[0]], "23514", "c")
				}
			}
			same(t, d.Count(t), 0)
			var left int
			d.Query(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'`, &left)
			same(t, left, 0)
		})
	}
}

func wantPlace(t *testing.T, err error, code, constraint string) {
	t.Helper()
	wantCode(t, nil, err, code)
	s, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T", err)
	}
	same(t, s.Unwrap()[0].(interface{ ConstraintName() string }).ConstraintName(), constraint)
}
