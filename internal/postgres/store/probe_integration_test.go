//go:build integration

package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

func TestProbe_Catches(t *testing.T) {
	t.Parallel()
	const partitioned = `ALTER TABLE decision_logs RENAME TO was;
		CREATE TABLE decision_logs (LIKE was INCLUDING DEFAULTS, PRIMARY KEY (decision_id, ts)) PARTITION BY RANGE (ts);
		CREATE TABLE decision_logs_2023 PARTITION OF decision_logs FOR VALUES FROM ('2023-01-01') TO ('2024-01-01')`
	for name, c := range map[string]struct{ sql, code string }{
		"table missing":        {`DROP TABLE decision_logs`, "42P01"},
		"table renamed":        {`ALTER TABLE decision_logs RENAME TO other`, "42P01"},
		"column dropped":       {`ALTER TABLE decision_logs DROP COLUMN bundles`, "42703"},
		"column retyped":       {`ALTER TABLE decision_logs ALTER COLUMN opa_version TYPE int USING 0`, "42804"},
		"NOT NULL added":       {`ALTER TABLE decision_logs ADD COLUMN tenant text NOT NULL`, "23502"},
		"CHECK for all":        {`ALTER TABLE decision_logs ADD CONSTRAINT odd CHECK (false)`, "23514"},
		"unique index dropped": {`ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey`, "42P10"},
		"no partition":         {partitioned, "23514"},
		"row swallowed":        {`CREATE RULE swallow AS ON INSERT TO decision_logs DO INSTEAD NOTHING`, "0A000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.Exec(t, c.sql)
			db := open(t, d.URL, 0)
			wantCode(t, nil, db.Probe(context.Background(), noon), c.code)
		})
	}
	for _, state := range []string{"P0001", "53100", "25006", "22012", "57014", "XX000"} {
		t.Run("trigger raises "+state, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.RaiseAll(t, pgtest.Fault{Code: state})
			wantCode(t, nil, open(t, d.URL, 0).Probe(context.Background(), noon), state)
		})
	}
	t.Run("trigger swallows", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		d.BeforeInsert(t, `RETURN NULL;`)
		wantCode(t, nil, open(t, d.URL, 0).Probe(context.Background(), noon), "config")
	})
	t.Run("no SELECT and no COPY", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		d.Exec(t, `ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY; CREATE POLICY all_of_it ON decision_logs USING (true) WITH CHECK (true)`)
		for grants, code := range map[string]string{"INSERT, SELECT (decision_id, ts)": "42501", "INSERT, SELECT": ""} {
			err := open(t, d.Role(t, grants), 0).Probe(context.Background(), noon)
			if code != "" {
				wantCode(t, nil, err, code)
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, grants := range []string{"", "INSERT", "SELECT"} {
		t.Run("grants only "+grants, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			wantCode(t, nil, open(t, d.Role(t, grants), 0).Probe(context.Background(), noon), "42501")
		})
	}
	t.Run("nothing is wrong with enough grants", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		db := open(t, d.Role(t, "SELECT, INSERT"), 0)
		if err := db.Probe(context.Background(), noon); err != nil {
			t.Fatal(err)
		}
		same(t, save(t, db, row("a", noon, `{}`), row("a", noon, `{}`)), []pipeline.Outcome{stored, present})
	})
	t.Run("hanging", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		d.Slow(t, time.Minute)
		wantCode(t, nil, open(t, d.URL, 10*time.Second).Probe(context.Background(), noon), "57014")
	})
}

// A rule for UPDATE refuses every INSERT with ON CONFLICT (0A000). COPY passes, and so does everything that Store asks.
func TestProbe_RuleForUpdate(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE RULE keep AS ON UPDATE TO decision_logs DO INSTEAD NOTHING; ALTER TABLE decision_logs ADD CHECK (decision_id <> 'bad')`)
	st := open(t, d.URL, 0)
	same(t, save(t, st, row("a", noon, `{}`)), []pipeline.Outcome{stored})
	code(t, st, "23514", row("a", noon, `{}`), row("bad", noon, `{}`), row("b", noon, `{}`))
	if err := st.Probe(context.Background(), noon); err != nil {
		t.Fatalf("the table takes rows, and the probe is refused: %v", err)
	}
	same(t, save(t, st, row("a", noon, `{}`), row("b", noon, `{}`)), []pipeline.Outcome{present, stored})
}

// A full disk lets one row pass where there is room in a page, so after 53100 the probe asks for more.
func TestProbe_RoomForManyAfterAFullDisk(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE SEQUENCE room`)
	d.BeforeInsert(t, `IF nextval('room') > 5 THEN RAISE EXCEPTION USING ERRCODE = '53100'; END IF; RETURN NEW;`)
	db := open(t, d.URL, 0)
	room := func() { d.Exec(t, `SELECT setval('room', 1, false)`) }

	room()
	if err := db.Probe(context.Background(), noon); err != nil {
		t.Fatalf("one row fits: %v", err)
	}
	rows := make([]pipeline.Row, 10)
	for i := range rows {
		rows[i] = row(string(rune('a'+i)), noon, `{}`)
	}
	room()
	code(t, db, "53100", rows...)
	room()
	wantCode(t, nil, db.Probe(context.Background(), noon), "53100")
	d.Calm(t)
	if err := db.Probe(context.Background(), noon); err != nil {
		t.Fatal(err)
	}
	same(t, d.Count(t), 0)
}

func TestProbe_DoesNotWaitForThePool(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.BeforeInsert(t, `IF NEW.decision_id = 'slow' THEN PERFORM pg_sleep(600); END IF; RETURN NEW;`)
	db, err := store.Open(db.Config{URL: d.URL, MaxConns: 1, StoreTimeout: time.Minute}, nop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := db.Store(ctx, []pipeline.Row{row("slow", noon, `{}`)}, false)
		done <- err
	}()
	d.Sessions(t, 1, "COPY decision_logs")
	if err := db.Probe(context.Background(), noon); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Fatalf("the probe waited for the store (%v)", err)
	default:
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("the store that nobody waits for any more ended with %v", err)
	}
}

// A user's CHECK need not like the row that is made up: a probe resembles what the table took.
func TestProbe_UsersCheck(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `ALTER TABLE decision_logs ADD CONSTRAINT ours CHECK (service = 'shop' AND ts > '2020-01-01' AND raw->>'decision_id' = decision_id AND source_offset * 1000 + source_index >= 0 AND uploaded_by IS NOT NULL AND uploaded_by LIKE 'spiffe://shop/%')`)
	first := open(t, d.URL, 0)
	wantCode(t, nil, first.Probe(t.Context(), noon), "23514")
	r := full("6e8bc430-9c3a-4b1f-8a5e-0123456789ab", noon, 10)
	r.Log.Raw = []byte(event(r.Log.ID, noon, nil))
	save(t, first, r)
	for name, db := range map[string]*store.Store{"the same process": first, "a new process": open(t, d.URL, 0)} {
		for _, at := range []time.Time{noon, {}} {
			if err := db.Probe(t.Context(), at); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantCode(t, nil, db.Probe(t.Context(), noon.AddDate(-20, 0, 0)), "23514")
	}
	same(t, d.Exec(t, `DELETE FROM decision_logs`), int64(1))
}

// The owner tightens a CHECK, so that it refuses the last row that was stored and the row that is made up. The good decisions
// of the next batch speak for the table.
func TestProbe_TightenedCheck(t *testing.T) {
	t.Parallel()
	tenant := map[string]any{"tenant": "acme"}
	for name, started := range map[string]bool{"the same process": false, "a new process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			db := open(t, d.URL, time.Minute)
			carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", midday, nil))})
			d.Exec(t, `ALTER TABLE decision_logs ADD CONSTRAINT tenant CHECK (raw ? 'tenant') NOT VALID`)
			if started {
				db = open(t, d.URL, time.Minute)
			}
			c := carry(t, db, false, 1, []*kgo.Record{
				sourceRecord(2, event("id-b", midday, tenant)), sourceRecord(3, event("id-bad", midday, nil)), sourceRecord(4, event("id-c", midday, tenant)),
			})
			same(t, c.homes, []string{"2 row", "3 dead_letter 23514", "4 row"})
			same(t, len(c.holds), 0)
		})
	}
}

// A disk was full once, so a probe stores many copies of a good row. They do not stand in each other's way, nor in that of
// the row itself.
func TestProbe_UsersConstraintAfterAFullDisk(t *testing.T) {
	t.Parallel()
	const unique, constraint = `CREATE UNIQUE INDEX once ON decision_logs `, `ALTER TABLE decision_logs ADD CONSTRAINT ours `
	for name, ddl := range map[string]string{
		"places":                unique + `(source_topic, source_partition, source_offset, source_index)`,
		"numbers":               unique + `(opa_id, req_id)`,
		"in raw":                unique + `((raw->'labels'->>'id'), (raw->>'req_id'))`,
		"of a path":             unique + `(path, (raw->>'decision_id'))`,
		"a moment":              unique + `(ts, path)`, // no two copies fit
		"a moment, excluded":    constraint + `EXCLUDE (ts WITH =, path WITH =)`,
		"numbers, excluded":     constraint + `EXCLUDE (opa_id WITH =, req_id WITH =)`,
		"numbers with a bound":  constraint + `CHECK (req_id BETWEEN 1 AND 100)`,
		"the last of a moment":  own(`DELETE FROM decision_logs WHERE ts = NEW.ts AND path IS NOT DISTINCT FROM NEW.path AND decision_id <> NEW.decision_id; RETURN NULL;`) + after,
		"numbers of a register": `CREATE TABLE register (n bigint PRIMARY KEY); INSERT INTO register VALUES (1), (2); ` + constraint + `FOREIGN KEY (req_id) REFERENCES register`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			d.Exec(t, ddl)
			db := open(t, d.URL, time.Minute)
			numbered := func(n int) pipeline.Row {
				r := row(fmt.Sprint("a", n), noon.Add(time.Duration(n)*time.Second), fmt.Sprintf(`{"req_id":%d,"labels":{"id":"opa-1"}}`, n))
				r.Offset = int64(n)
				return r
			}
			same(t, save(t, db, numbered(1)), []pipeline.Outcome{stored})
			d.BeforeInsert(t, `RAISE EXCEPTION USING ERRCODE = '53100';`)
			code(t, db, "53100", numbered(2))
			wantCode(t, nil, db.Probe(t.Context(), noon), "53100")
			d.Calm(t)
			if err := db.Probe(t.Context(), noon); err != nil {
				t.Errorf("there is room again: %v", err)
			}
			same(t, db.FoundFull(), false)
		})
	}
}

// A batch of many rows that is stored proves that the disk has room.
func TestProbe_ManyRowsFindRoom(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, time.Minute)
	rows := func(prefix string) (rows []pipeline.Row) {
		for i := range 256 {
			rows = append(rows, row(fmt.Sprint(prefix, i), noon, `{}`))
		}
		return rows
	}
	d.BeforeInsert(t, `RAISE EXCEPTION USING ERRCODE = '53100';`)
	code(t, db, "53100", rows("a")...)
	d.Calm(t)
	save(t, db, rows("a")[1:]...)
	same(t, db.FoundFull(), true)
	save(t, db, rows("a")...) // one is new
	same(t, db.FoundFull(), true)
	save(t, db, rows("b")...)
	same(t, db.FoundFull(), false)
}

// The users' CHECK refuses the row that is made up, and another constraint a copy of a stored one. One bad record among good
// ones is found all the same.
func TestProbe_UsersCheckAndUniqueIndex(t *testing.T) {
	t.Parallel()
	for name, apart := range map[string]string{
		"unique":   `CREATE UNIQUE INDEX once ON decision_logs (opa_id, req_id)`,
		"excluded": `ALTER TABLE decision_logs ADD CONSTRAINT once EXCLUDE (opa_id WITH =, req_id WITH =)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			d.Exec(t, apart+`; ALTER TABLE decision_logs ADD CONSTRAINT shops CHECK (path LIKE 'shop/%' AND req_id = (raw->>'req_id')::bigint)`)
			of := func(offset int64, id, path string) *kgo.Record {
				return sourceRecord(offset, event(id, midday, map[string]any{"req_id": offset + 10, "path": path, "labels": map[string]any{"id": "opa-1"}}))
			}
			c := carry(t, open(t, d.URL, time.Minute), false, 1,
				[]*kgo.Record{of(1, "a", "shop/allow"), of(2, "b", "shop/allow")},
				[]*kgo.Record{of(3, "c", "shop/allow"), of(4, "bad", "bank/allow"), of(5, "d", "shop/allow")})
			same(t, len(c.holds), 0)
			same(t, c.homes, []string{"1 row", "2 row", "3 row", "4 dead_letter 23514", "5 row"})
		})
	}
}
