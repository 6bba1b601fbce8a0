//go:build integration

package historydb_test

import (
	"errors"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
)

// old waits until no transaction of the server is open that began before the rows were written. Other tests have some.
func (a *archived) old() {
	a.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var are bool
		a.Query(a.t, `SELECT coalesce(min(age(xmin)) > age(pg_snapshot_xmin(pg_current_snapshot())::xid), true) FROM decision_logs`, &are)
		if are {
			return
		}
		if time.Now().After(deadline) {
			a.t.Fatal("never: each transaction of the server began after the rows were written")
		}
	}
}

// TestArchive_SeesWhatChanged: a day is hashed again before it is dropped unless it surely has the rows that were read.
func TestArchive_SeesWhatChanged(t *testing.T) {
	t.Parallel()
	const row = ` SELECT decision_id, ts, path, allowed, requested_by, req_id, labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256 FROM decision_logs WHERE decision_id = 'd7'`
	const columns = `(decision_id, ts, path, allowed, requested_by, req_id, labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256)`
	for name, c := range map[string]struct {
		before, open, change string // before it is read; by a transaction that is open meanwhile; after it was read
		misread              bool
		same                 bool
	}{
		"nothing":                      {same: true},
		"a row is locked":              {change: `SELECT FROM decision_logs WHERE decision_id = 'd7' FOR UPDATE`, same: true},
		"a change is taken back":       {change: `BEGIN; UPDATE decision_logs SET path = 'other'; ROLLBACK`, same: true},
		"rows of another day":          {change: `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('x', '2026-03-05 01:00Z', '{}', 't', 0, 0, 0)`, same: true},
		"a column of one row":          {change: `UPDATE decision_logs SET path = 'other' WHERE decision_id = 'd7'`},
		"a value is written once more": {change: `UPDATE decision_logs SET path = path WHERE decision_id = 'd7'`},
		"a row comes":                  {change: `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('x', '2026-03-04 01:00Z', '{}', 't', 0, 0, 0)`},
		"a row goes":                   {change: `DELETE FROM decision_logs WHERE decision_id = 'd7'`},
		"a row takes another's place": {change: `CREATE TEMP TABLE kept AS` + row + `; DELETE FROM decision_logs WHERE decision_id = 'd7';
			UPDATE kept SET raw = '{"forged": true}'; INSERT INTO decision_logs ` + columns + ` SELECT * FROM kept`},
		"a transaction from before":              {open: `SELECT pg_current_xact_id()`, change: `UPDATE decision_logs SET path = 'other' WHERE decision_id = 'd7'; COMMIT`},
		"a row was written beside an older one":  {open: `SELECT pg_current_xact_id()`, before: `UPDATE decision_logs SET path = 'other' WHERE decision_id = 'd7'`, change: `COMMIT`},
		"a column whose values have other texts": {before: `CREATE TYPE mood AS ENUM ('calm'); ALTER TABLE decision_logs ADD COLUMN mood mood DEFAULT 'calm'`, change: `ALTER TYPE mood RENAME VALUE 'calm' TO 'cold'`},
		"a column gets other values":             {change: `ALTER TABLE decision_logs ALTER COLUMN price TYPE numeric(12, 4) USING 1.5`},
		"two columns change their names":         {change: `ALTER TABLE decision_logs RENAME requested_by TO one; ALTER TABLE decision_logs RENAME path TO requested_by; ALTER TABLE decision_logs RENAME one TO path`},
		"a column goes and comes again":          {change: `ALTER TABLE decision_logs DROP COLUMN f; ALTER TABLE decision_logs ADD COLUMN f float8 DEFAULT 7`},
		"a row was read twice":                   {misread: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.settle()
			a.rows(1, 50)
			open := pgxConnect(t, a.URL)
			if c.open != "" {
				_, err := open.Exec(t.Context(), `BEGIN; `+c.open)
				check(t, err)
			}
			if c.before != "" {
				a.Exec(t, c.before)
			}
			if c.open == "" {
				a.old()
			}
			day, err := a.c.Table.Open(t.Context(), a.day)
			check(t, err)
			defer day.Close()
			if at, err := day.Where(t.Context()); err != nil || at != archive.Attached {
				t.Fatalf("%v, %v", at, err)
			}
			shape, err := day.Shape(t.Context())
			check(t, err)
			facts, err := day.Read(t.Context(), shape, func([]byte) error { return nil })
			check(t, err)
			if sum, err := day.Sum(t.Context(), shape); err != nil || sum != facts.Total || sum.Rows != 50 {
				t.Fatalf("read %+v, and the table has %+v, %v", facts.Total, sum, err)
			}
			if c.change != "" {
				_, err = open.Exec(t.Context(), c.change)
				check(t, err)
			}
			if same, err := historydb.Unchanged(t.Context(), day, shape, c.misread); err != nil || same != c.same {
				t.Errorf("unchanged: %v, %v", same, err)
			}
		})
	}
}

// Vacuum freezes rows, and moves them to another file. Neither changes one.
func TestArchive_SeesNoVacuum(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 50)
	a.Exec(t, `VACUUM (FREEZE) decision_logs`)
	a.old()
	day, err := a.c.Table.Open(t.Context(), a.day)
	check(t, err)
	defer day.Close()
	_, err = day.Where(t.Context())
	check(t, err)
	shape, err := day.Shape(t.Context())
	check(t, err)
	_, err = day.Read(t.Context(), shape, func([]byte) error { return nil })
	check(t, err)
	for _, vacuum := range []string{`VACUUM (FREEZE) decision_logs`, `VACUUM FULL decision_logs`} {
		a.Exec(t, vacuum)
		if same, err := historydb.Unchanged(t.Context(), day, shape, false); err != nil || !same {
			t.Errorf("%s: %v, %v", vacuum, same, err)
		}
	}
}

// TestArchive_ChangedWhileItIsVerified: changes that an operator makes to a day between reading and dropping it are not lost.
func TestArchive_ChangedWhileItIsVerified(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"two columns change their names": `ALTER TABLE decision_logs RENAME requested_by TO one; ALTER TABLE decision_logs RENAME path TO requested_by; ALTER TABLE decision_logs RENAME one TO path`,
		"a column goes and comes again":  `ALTER TABLE decision_logs DROP COLUMN f; ALTER TABLE decision_logs ADD COLUMN f float8 DEFAULT 7`,
		"a column comes with values":     `ALTER TABLE decision_logs ADD COLUMN team text; UPDATE decision_logs SET team = 'of ' || decision_id`,
		"a column comes for all":         `ALTER TABLE decision_logs ADD COLUMN team text DEFAULT 'security'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.settle()
			a.rows(1, 50)
			a.old()
			var changed string
			a.c.Told = func(s archive.Step) {
				if s == archive.StepVerified && changed == "" {
					a.Exec(t, change)
					changed = a.text()
				}
			}
			if done := a.archive(false); !done.Dropped || !done.Late || done.Rows != 50 {
				t.Fatalf("%+v", done)
			}
			if r := a.restore(); r.Stored != 50 || a.text() != changed {
				t.Errorf("%+v, and the rows are not those that were dropped", r)
			}
		})
	}
}

// TestArchive_AnotherTableInItsPlace: a table that takes the place of a day's partition is not dropped for the one that was read.
func TestArchive_AnotherTableInItsPlace(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]archive.Step{"before it is taken out": archive.StepVerified, "after that": archive.StepDetached} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.settle()
			a.rows(1, 50)
			a.old()
			a.c.Told = func(s archive.Step) {
				switch {
				case s != at:
				case s == archive.StepDetached:
					a.Exec(t, `ALTER TABLE decision_logs_leaving_20260304 RENAME TO kept; CREATE TABLE decision_logs_leaving_20260304 (LIKE kept INCLUDING ALL);
						INSERT INTO decision_logs_leaving_20260304 (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('the only one', '2026-03-04 01:00Z', '{}', 't', 0, 0, 0)`)
				default:
					a.Exec(t, `ALTER TABLE decision_logs DETACH PARTITION decision_logs_p20260304; ALTER TABLE decision_logs_p20260304 RENAME TO kept; CREATE TABLE decision_logs_p20260304 (LIKE kept INCLUDING ALL);
						INSERT INTO decision_logs_p20260304 (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('the only one', '2026-03-04 01:00Z', '{}', 't', 0, 0, 0);
						ALTER TABLE decision_logs ATTACH PARTITION decision_logs_p20260304 FOR VALUES FROM ('2026-03-04 00:00Z') TO ('2026-03-05 00:00Z')`)
				}
			}
			done, err := a.c.Archive(t.Context(), a.day, false)
			if _, refused := errors.AsType[*archive.CannotError](err); !refused || done.Dropped {
				t.Fatalf("%+v, %v", done, err)
			}
			var there int
			a.Query(t, `SELECT count(*) FROM `+map[archive.Step]string{archive.StepVerified: "decision_logs_p20260304", archive.StepDetached: "decision_logs_leaving_20260304"}[at], &there)
			same(t, there, 1)
		})
	}
}
