//go:build integration

package store_test

import (
	"context"
	"errors"
	"testing"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

// code stores rows and wants an error with this code.
func code(t testing.TB, db *store.Store, want string, rows ...pipeline.Row) error {
	t.Helper()
	out, err := db.Store(context.Background(), rows, false)
	return wantCode(t, out, err, want)
}

func wantCode(t testing.TB, out any, err error, want string) error {
	t.Helper()
	if err == nil {
		t.Fatalf("no error but %v, want %s", out, want)
	}
	if got := errclass.Classify(err).Code; got != want {
		t.Fatalf("code %s, want %s: %v", got, want, err)
	}
	return err
}

func TestStore_WholeBatchOrNothing(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.RaiseMarked(t)
	p := d.NewProxy(t)
	pg := open(t, p.URL, 0)
	rows := []pipeline.Row{row("a", noon, `{}`), row("b", noon, `{"raise":"23514","raise_constraint":"odd","raise_column":"path","raise_table":"decision_logs"}`), row("c", noon, `{}`)}
	err := code(t, pg, "23514", rows...)
	var s *db.ServerError
	if !errors.As(err, &s) {
		t.Fatalf("no ServerError: %v", err)
	}
	same(t, []string{s.SQLState(), s.ConstraintName(), s.ColumnName(), s.TableName(), s.Severity()}, []string{"23514", "odd", "path", "decision_logs", "ERROR"})
	same(t, d.Count(t), 0)
	same(t, save(t, pg, rows[0], rows[2]), []pipeline.Outcome{stored, stored}) // the same connection is good for more
	code(t, pg, "23514", rows...)
	same(t, d.Count(t), 2)
	same(t, p.Dials(), 1)
}

func TestStore_ReadOnlyNodeEmptiesThePool(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	p := d.NewProxy(t)
	db := open(t, p.URL, 0)
	save(t, db, row("a", noon, `{}`))
	save(t, db, row("b", noon, `{}`))
	same(t, p.Dials(), 1)
	d.RaiseAll(t, pgtest.Fault{Code: "25006"}) // the session that we have loses its right to write
	code(t, db, "25006", row("c", noon, `{}`))
	d.Calm(t)
	same(t, save(t, db, row("c", noon, `{}`)), []pipeline.Outcome{stored})
	same(t, p.Dials(), 2)

	// A node that new sessions find read-only is refused while connecting, with the same code.
	d.ReadOnly(t, true)
	d.KillSessions(t)
	wantCode(t, nil, db.Probe(context.Background(), noon), "25006")
	_, err := db.Store(context.Background(), []pipeline.Row{row("d", noon, `{}`)}, true)
	wantCode(t, nil, err, "25006")
	d.ReadOnly(t, false)
	same(t, save(t, db, row("d", noon, `{}`)), []pipeline.Outcome{stored})
}

func TestStore_FreshConnection(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	p := d.NewProxy(t)
	db := open(t, p.URL, 0)
	save(t, db, row("a", noon, `{}`))
	for i := range 3 {
		if _, err := db.Store(context.Background(), []pipeline.Row{row("a", noon, `{}`)}, true); err != nil {
			t.Fatal(err)
		}
		same(t, p.Dials(), i+2)
	}
}

func TestCommit_MadeDurable(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `ALTER DATABASE `+d.Name+` SET synchronous_commit = off;
		ALTER TABLE decision_logs ADD COLUMN how text DEFAULT current_setting('synchronous_commit')`)
	save(t, open(t, d.URL, 0), row("a", noon, `{}`))
	var how string
	d.Query(t, `SELECT how FROM decision_logs`, &how)
	same(t, how, "on")
}

func TestStore_ChangedTable(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	save(t, db, row("a", noon, `{}`))
	d.Exec(t, `ALTER TABLE decision_logs ADD COLUMN more int DEFAULT 1; ALTER TABLE decision_logs ALTER COLUMN path TYPE varchar(100)`)
	same(t, save(t, db, row("b", noon, `{}`), row("a", noon, `{}`)), []pipeline.Outcome{stored, present})
}

func TestStore_SwallowedRow(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.BeforeInsert(t, `IF NEW.decision_id = 'gone' THEN RETURN NULL; END IF; RETURN NEW;`)
	code(t, open(t, d.URL, 0), "swallowed", row("a", noon, `{}`), row("gone", noon, `{}`))
	same(t, d.Count(t), 0)
}

// A fault of the harness is put in over the last one while programs write: neither may end as a deadlock.
func TestStore_FaultsChangeUnderWriters(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	stop := pgtest.Writers(t, d, 3)
	for range 40 {
		d.BeforeInsert(t, `RETURN NEW;`)
	}
	d.Calm(t)
	n, parked := stop()
	if got := d.Count(t); got != n || parked > 0 {
		t.Errorf("%d rows of %d, %d were parked", got, n, parked)
	}
}
