//go:build integration

package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/errclass"
	"docket/internal/pgtest"
	"docket/internal/pipeline"
	"docket/internal/postgres"
)

// code stores rows and wants an error with this code.
func code(t testing.TB, db *postgres.DB, want string, rows ...pipeline.Row) error {
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

func TestABatchIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.RaiseMarked(t)
	p := d.NewProxy(t)
	db := open(t, p.URL, 0)
	rows := []pipeline.Row{row("a", noon, `{}`), row("b", noon, `{"raise":"23514","raise_constraint":"odd","raise_column":"path","raise_table":"decision_logs"}`), row("c", noon, `{}`)}
	err := code(t, db, "23514", rows...)
	var s *postgres.ServerError
	if !errors.As(err, &s) {
		t.Fatalf("no ServerError: %v", err)
	}
	same(t, []string{s.SQLState(), s.ConstraintName(), s.ColumnName(), s.TableName(), s.Severity()}, []string{"23514", "odd", "path", "decision_logs", "ERROR"})
	same(t, d.Count(t), 0)
	same(t, store(t, db, rows[0], rows[2]), []pipeline.Outcome{stored, stored}) // the same connection is good for more
	code(t, db, "23514", rows...)
	same(t, d.Count(t), 2)
	same(t, p.Dials(), 1)
}

func TestWhatPostgresRefusesHasItsCode(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for want, r := range map[string]pipeline.Row{
		"22P05": row("id", noon, `{"a":"\u0000"}`),
		"22P02": row("id", noon, `{"a":`),
		"22021": row("i\x00d", noon, `{}`),
		"22003": row("id", noon, `{"a":1e999999}`),
		"54001": row("id", noon, deep),
		"23502": row("id", noon, ``),
		"54000": row(incompressible(6000), noon, `{}`),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			code(t, db, want, r, row("good", noon, `{}`))
		})
	}
	t.Cleanup(func() { same(t, d.Count(t), 0) })
}

// A comparison refuses what an insert refuses: a later double must not slip through because only the first is inserted.
func TestABadDoubleIsRefused(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	code(t, db, "22P05", row("id", noon, `{}`), row("id", noon, `{"a":"\u0000"}`))
	same(t, d.Count(t), 0)
}

func TestDeferredConstraintsCountAsRefusals(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '23503'; END $$;
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON decision_logs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()`)
	db := open(t, d.URL, 0)
	code(t, db, "23503", row("id", noon, `{}`))
	wantCode(t, nil, db.Probe(context.Background(), noon), "23503")
	same(t, d.Count(t), 0)
}

func TestALostCommitIsAmbiguousAndStoredOnceEitherWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut   pgtest.Cut
		code  string
		after pipeline.Outcome
	}{
		"before the insert":  {pgtest.CutBeforeInsert, "network", stored},
		"after the insert":   {pgtest.CutAfterInsert, "network", stored},
		"commit not applied": {pgtest.CutBeforeCommit, "ambiguous_commit", stored},
		"commit applied":     {pgtest.CutAfterCommit, "ambiguous_commit", present},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			p := d.NewProxy(t)
			db := open(t, p.URL, 0)
			rows := []pipeline.Row{row("a", noon, `{}`), row("b", noon, `{}`)}
			store(t, db, row("warm", noon, `{}`))
			p.Cut(c.cut)
			code(t, db, c.code, rows...)
			same(t, p.Cuts(), 1)
			same(t, store(t, db, rows...), []pipeline.Outcome{c.after, c.after})
			same(t, d.Count(t), 3)
		})
	}
}

func TestAKilledSessionIsTheMomentsFault(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Slow(t, 20*time.Second)
	db := open(t, d.URL, time.Minute)
	done := make(chan error, 1)
	go func() {
		_, err := db.Store(context.Background(), []pipeline.Row{row("a", noon, `{}`)}, false)
		done <- err
	}()
	d.Sessions(t, 1, "INSERT INTO decision_logs")
	d.KillSessions(t)
	wantCode(t, nil, <-done, "57P01")
	d.Calm(t)
	same(t, store(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
}

func TestTheServerGivesUpBeforeWeDo(t *testing.T) {
	t.Parallel()
	t.Run("slow statement", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		d.Slow(t, 30*time.Second)
		db := open(t, d.URL, 4*time.Second)
		code(t, db, "57014", row("a", noon, `{}`))
		d.Calm(t)
		same(t, store(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
	})
	t.Run("locked table", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		unlock := d.Lock(t)
		db := open(t, d.URL, 4*time.Second)
		code(t, db, "55P03", row("a", noon, `{}`))
		wantCode(t, nil, db.Probe(context.Background(), noon), "55P03")
		unlock()
		same(t, store(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
	})
}

func TestOurDeadlineHoldsWhereTheServersDoesNot(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	// A deferred trigger runs inside COMMIT, where there is no statement_timeout.
	d.Exec(t, `CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON decision_logs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()`)
	db := open(t, d.URL, 3*time.Second)
	begin := time.Now()
	err := code(t, db, "ambiguous_commit", row("a", noon, `{}`))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("no deadline in %v", err)
	}
	if took := time.Since(begin); took > 15*time.Second {
		t.Fatalf("took %v", took)
	}
}

func TestAStopIsNobodysFault(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Slow(t, 20*time.Second)
	db := open(t, d.URL, time.Minute)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := db.Store(ctx, []pipeline.Row{row("a", noon, `{}`)}, false)
		done <- err
	}()
	d.Sessions(t, 1, "INSERT INTO decision_logs")
	cancel()
	err := <-done
	wantCode(t, nil, err, "canceled")
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v is not context.Canceled", err)
	}
}

func TestAReadOnlyNodeEmptiesThePool(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	p := d.NewProxy(t)
	db := open(t, p.URL, 0)
	store(t, db, row("a", noon, `{}`))
	store(t, db, row("b", noon, `{}`))
	same(t, p.Dials(), 1)
	d.RaiseAll(t, pgtest.Fault{Code: "25006"}) // the session that we have loses its right to write
	code(t, db, "25006", row("c", noon, `{}`))
	d.Calm(t)
	same(t, store(t, db, row("c", noon, `{}`)), []pipeline.Outcome{stored})
	same(t, p.Dials(), 2)

	// A node that new sessions find read-only is refused while connecting, with the same code.
	d.ReadOnly(t, true)
	d.KillSessions(t)
	wantCode(t, nil, db.Probe(context.Background(), noon), "25006")
	_, err := db.Store(context.Background(), []pipeline.Row{row("d", noon, `{}`)}, true)
	wantCode(t, nil, err, "25006")
	d.ReadOnly(t, false)
	same(t, store(t, db, row("d", noon, `{}`)), []pipeline.Outcome{stored})
}

func TestFreshIsAConnectionOfItsOwn(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	p := d.NewProxy(t)
	db := open(t, p.URL, 0)
	store(t, db, row("a", noon, `{}`))
	for i := range 3 {
		if _, err := db.Store(context.Background(), []pipeline.Row{row("a", noon, `{}`)}, true); err != nil {
			t.Fatal(err)
		}
		same(t, p.Dials(), i+2)
	}
}

func TestAFullPoolIsTold(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Slow(t, 2*time.Second)
	slow := open(t, d.URL+"&pool_max_conns=1", time.Minute)
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := slow.Store(context.Background(), []pipeline.Row{row("a", noon, `{}`)}, false); err != nil {
			t.Error(err)
		}
	})
	d.Sessions(t, 1, "INSERT INTO decision_logs")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := slow.Store(ctx, []pipeline.Row{row("b", noon, `{}`)}, false)
	wantCode(t, nil, err, "pool_exhausted")
	wait.Wait()
}

func TestACommitIsMadeDurable(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `ALTER DATABASE `+d.Name+` SET synchronous_commit = off;
		ALTER TABLE decision_logs ADD COLUMN how text DEFAULT current_setting('synchronous_commit')`)
	store(t, open(t, d.URL, 0), row("a", noon, `{}`))
	var how string
	d.Query(t, `SELECT how FROM decision_logs`, &how)
	same(t, how, "on")
}

func TestAChangedTableIsMetWithoutAStalePlan(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	store(t, db, row("a", noon, `{}`))
	d.Exec(t, `ALTER TABLE decision_logs ADD COLUMN more int DEFAULT 1; ALTER TABLE decision_logs ALTER COLUMN path TYPE varchar(100)`)
	same(t, store(t, db, row("b", noon, `{}`), row("a", noon, `{}`)), []pipeline.Outcome{stored, present})
}

func TestARowThatVanishesIsTriedAgain(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.BeforeInsert(t, `IF NEW.decision_id = 'gone' THEN RETURN NULL; END IF; RETURN NEW;`)
	code(t, open(t, d.URL, 0), "40001", row("a", noon, `{}`), row("gone", noon, `{}`))
	same(t, d.Count(t), 0)
}
