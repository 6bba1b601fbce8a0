//go:build integration

package schema_test

import (
	"context"
	"testing"

	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// Others may create functions and operators in a schema. One that fits its arguments better than the server's own would
// be chosen, and run as the owner of the table.
func TestMakePartitions_RunsNothingOfOthers(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	worker := d.Role(t, "SELECT, INSERT")
	d.Exec(t, `GRANT CREATE ON SCHEMA public TO PUBLIC; CREATE TABLE ran (what text); GRANT INSERT, SELECT ON ran TO PUBLIC`)
	err := exec(worker, `
		CREATE FUNCTION public.note(what text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN
			IF current_user <> session_user THEN INSERT INTO public.ran VALUES (what); END IF; RETURN true; END';
		CREATE FUNCTION public.has_table_privilege(text, oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT public.note(''privilege'')';
		CREATE FUNCTION public.to_char(date, text) RETURNS text LANGUAGE sql AS 'SELECT pg_catalog.to_char($1::timestamp, $2) FROM public.note(''to_char'')';
		CREATE FUNCTION public.quote_ident(name) RETURNS text LANGUAGE sql AS 'SELECT pg_catalog.quote_ident($1::text) FROM public.note(''quote_ident'')';
		CREATE FUNCTION public.array_to_string(text[], text) RETURNS text LANGUAGE sql AS 'SELECT ''fillfactor=90'' FROM public.note(''array_to_string'')';
		CREATE FUNCTION public.same(oid, int) RETURNS boolean LANGUAGE sql AS 'SELECT public.note(''='')';
		CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = int, FUNCTION = public.same);
		SELECT public.decision_logs_make_partitions(9)`)
	if err != nil {
		t.Fatal(err)
	}
	var what string
	d.Query(t, `SELECT coalesce(string_agg(DISTINCT what, ', '), '') FROM ran`, &what)
	same(t, what, "")
	var n int
	d.Query(t, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'decision_logs'::regclass`, &n)
	same(t, n, 12)
}

// With the table gone, the function finds no temporary one of the caller's in its place.
func TestMakePartitions_TemporaryTables(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	worker := d.Role(t, "SELECT, INSERT")
	d.Exec(t, `ALTER TABLE decision_logs RENAME TO elsewhere`)
	err := exec(worker, `CREATE TEMP TABLE decision_logs (decision_id text, ts timestamptz) PARTITION BY RANGE (ts);
		CREATE TEMP TABLE theirs PARTITION OF decision_logs DEFAULT;
		CREATE FUNCTION pg_temp.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''run as %'', current_user; END';
		CREATE TRIGGER odd BEFORE DELETE ON theirs FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.f();
		SELECT public.decision_logs_make_partitions(9)`)
	if err != nil {
		t.Fatal(err)
	}
}

// A day can have so many rows in the default partition that moving them takes long, as when its own was dropped. It keeps
// neither the other days from being made nor writers waiting for long.
func TestMakePartitions_LongDay(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	d.Exec(t, `DROP TABLE `+named(0))
	save(t, db, row("today", day(0), `{}`), row("soon", day(9), `{}`))
	d.Exec(t, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.decision_id = ''today'' THEN PERFORM pg_sleep(20); END IF; RETURN OLD; END';
		CREATE TRIGGER slow BEFORE DELETE ON decision_logs_default FOR EACH ROW EXECUTE FUNCTION slow()`)
	_, err := schema.New(db.DB).MakePartitions(context.Background(), 10)
	wantCode(t, nil, err, "57014") // so it did not sleep to its end
	var n int
	d.Query(t, `SELECT count(*) FROM pg_class WHERE relname IN ('`+named(8)+`', '`+named(9)+`', '`+named(10)+`')`, &n)
	same(t, n, 3)
	d.Exec(t, `DROP TRIGGER slow ON decision_logs_default`)
	same(t, made(t, db, 10), 1)
	same(t, []string{place(t, d, "today"), place(t, d, "soon")}, []string{named(0), named(9)})
}
