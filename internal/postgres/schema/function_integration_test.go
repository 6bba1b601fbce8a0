//go:build integration

package schema_test

import (
	"net/url"
	"testing"

	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// byHand calls the function as a person does, in a session that reads a backslash in a string as an escape.
const byHand = `SET standard_conforming_strings = off; SET escape_string_warning = off; SELECT decision_logs_make_partitions(9)`

func TestMakePartitions_EscapesInStrings(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, byHand)
	var n int
	d.Query(t, `SELECT count(*) FROM pg_class WHERE relname IN ('`+named(8)+`', '`+named(9)+`')`, &n)
	same(t, n, 2)
}

// TestMigrate_FunctionAgain has the function of an earlier release. A migration replaces it. Its owner, and who may call it, stay. A table
// whose partitions are not Docket's gets none.
func TestMigrate_FunctionAgain(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	role, err := url.Parse(d.Role(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	const now = `SELECT concat_ws(' ', pg_get_userbyid(proowner), proacl::text, proconfig::text), pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'decision_logs_make_partitions'`
	var was, is, text, again string
	d.Query(t, now, &is, &text)
	d.Exec(t, `DO $do$ BEGIN EXECUTE replace(replace(pg_get_functiondef('decision_logs_make_partitions(int)'::regprocedure), '[(]', '\('), '[)]', '\)'); END $do$;
		REVOKE ALL ON FUNCTION decision_logs_make_partitions(int) FROM PUBLIC; GRANT EXECUTE ON FUNCTION decision_logs_make_partitions(int) TO pg_monitor;
		ALTER FUNCTION decision_logs_make_partitions(int) OWNER TO `+role.User.Username()+`; DELETE FROM goose_db_version WHERE version_id >= 35`)
	migrate := func() {
		t.Helper()
		if _, err := schema.New(db.DB).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if d.Query(t, now, &was, &again); again == text {
		t.Fatal("it is not the function of an earlier release")
	}
	for range 2 {
		migrate()
		d.Query(t, now, &is, &again)
		same(t, []string{is, again}, []string{was, text})
		d.Exec(t, `DELETE FROM goose_db_version WHERE version_id >= 35`)
	}
	d.Exec(t, `DROP FUNCTION decision_logs_make_partitions(int)`)
	migrate()
	var there bool
	if d.Query(t, `SELECT to_regprocedure('decision_logs_make_partitions(int)') IS NOT NULL`, &there); there {
		t.Error("a function was made where there was none")
	}
}
