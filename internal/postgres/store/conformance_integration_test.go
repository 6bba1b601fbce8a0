//go:build integration

package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/db"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/storetest"
)

// A real server keeps every promise; the model of it runs the same cases where it lives.
func TestConformance_Server(t *testing.T) {
	t.Parallel()
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			c.Run(t, server{d, d.NewProxy(t)})
		})
	}
}

type server struct {
	*pgtest.DB
	proxy *pgtest.Proxy
}

func (s server) Config() db.Config { return db.Config{URL: s.proxy.URL} }

func (s server) heals(t testing.TB) func() { return func() { s.Calm(t) } }

func (s server) Refuse(t testing.TB, id string, f storetest.Fault) func() {
	which := "true"
	if id != "" {
		which = "NEW.decision_id = '" + id + "'"
	}
	s.BeforeInsert(t, fmt.Sprintf(`IF %s THEN
		RAISE EXCEPTION USING ERRCODE = '%s', MESSAGE = 'refused ' || NEW.raw::text, DETAIL = NEW::text, HINT = NEW.raw::text,
			CONSTRAINT = '%s', COLUMN = '%s', TABLE = '%s';
		END IF; RETURN NEW;`, which, f.Code, f.Constraint, f.Column, f.Table))
	return s.heals(t)
}

func (s server) Check(t testing.TB, name string, ids ...string) {
	s.Exec(t, fmt.Sprintf(`ALTER TABLE decision_logs ADD CONSTRAINT %s CHECK (decision_id <> ALL ('{%s}'))`, name, strings.Join(ids, ",")))
}

func (s server) late(t testing.TB, body string) {
	s.Exec(t, `CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+body+` END $$;
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON decision_logs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()`)
}

func (s server) RefuseLate(t testing.TB, code string) {
	s.late(t, `RAISE EXCEPTION USING ERRCODE = '`+code+`', MESSAGE = NEW.raw::text;`)
}

// SlowCommit has a deferred trigger of another table wait, to which a default writes. With a trigger of this table rows are looked
// for, and it would wait in a statement of its own.
func (s server) SlowCommit(t testing.TB, d time.Duration) {
	s.Exec(t, fmt.Sprintf(`CREATE TABLE batches (at timestamptz); GRANT INSERT ON batches TO PUBLIC;
		CREATE FUNCTION note() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.batches VALUES (now()); RETURN 1; END $$;
		ALTER TABLE decision_logs ADD COLUMN noted int; ALTER TABLE decision_logs ALTER COLUMN noted SET DEFAULT note();
		CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(%f); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON batches DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()`, d.Seconds()))
}

// Slow makes each statement slow and not each row, as the model does.
func (s server) Slow(t testing.TB, d time.Duration) func() {
	s.Exec(t, fmt.Sprintf(`CREATE FUNCTION pgtest_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(%f); RETURN NULL; END $$;
		CREATE TRIGGER pgtest_slow BEFORE INSERT ON decision_logs FOR EACH STATEMENT EXECUTE FUNCTION pgtest_slow()`, d.Seconds()))
	return s.heals(t)
}

func (s server) Break(t testing.TB, code string) {
	s.Exec(t, map[string]string{
		"42P01": `DROP TABLE decision_logs`,
		"42703": `ALTER TABLE decision_logs DROP COLUMN bundles`,
		"42P10": `ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey`,
		"23502": `ALTER TABLE decision_logs ADD COLUMN tenant text NOT NULL`,
	}[code])
}

func (s server) NoCopy(t testing.TB) db.Config {
	s.Exec(t, `ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY; CREATE POLICY all_of_it ON decision_logs USING (true) WITH CHECK (true)`)
	return db.Config{URL: s.Role(t, "SELECT, INSERT")}
}

func (s server) ReadOnly(t testing.TB) func() {
	s.DB.ReadOnly(t, true)
	s.KillSessions(t)
	return func() { s.DB.ReadOnly(t, false) }
}

func (s server) Kill(t testing.TB) { s.KillSessions(t) }

func (s server) Cut(_ testing.TB, at storetest.Cut) {
	s.proxy.Cut(map[storetest.Cut]pgtest.Cut{
		storetest.BeforeInsert: pgtest.CutBeforeInsert, storetest.AfterInsert: pgtest.CutAfterInsert, storetest.InCopy: pgtest.CutInCopy,
		storetest.BeforeCommit: pgtest.CutBeforeCommit, storetest.AfterCommit: pgtest.CutAfterCommit,
	}[at])
}

func (s server) Mask(t testing.TB) { s.BeforeInsert(t, `NEW.raw = '"masked"'; RETURN NEW;`) }

func (s server) Erase(t testing.TB) { s.Exec(t, `UPDATE decision_logs SET raw = '"erased"'`) }

func (s server) Forget(t testing.TB) { s.Exec(t, `UPDATE decision_logs SET raw_sha256 = NULL`) }

func (s server) Busy(t testing.TB) { s.Sessions(t, 1, "COPY decision_logs") }

func (s server) Raw(t testing.TB, id string, at time.Time) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var raw []byte // whatever encoding the role has
	err = conn.QueryRow(ctx, `SELECT convert_to(raw::text, 'UTF8') FROM decision_logs WHERE decision_id = $1 AND ts = $2`, id, at).Scan(&raw)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("read a row: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return string(raw)
}
