//go:build integration

package schema_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

// worst gives the checks that did not come out well. That a superuser may do too much is not counted: the tests are one.
func worst(checks []schema.Check) map[string]schema.Level {
	found := map[string]schema.Level{}
	for _, c := range checks {
		if c.Level > schema.OK && (c.Name != "rights" || !strings.Contains(c.Detail, "superuser")) {
			found[c.Name] = c.Level
		}
	}
	return found
}

func TestCheck(t *testing.T) {
	t.Parallel()
	type levels = map[string]schema.Level
	const fail, warn = schema.Fail, schema.Warn
	const after = `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER move AFTER INSERT ON decision_logs `
	for name, c := range map[string]struct {
		sql  string
		want levels
	}{
		"all is well":        {`SELECT 1`, levels{}},
		"no table":           {`DROP TABLE decision_logs`, levels{"table": fail}},
		"unlogged partition": {`ALTER TABLE decision_logs_before SET UNLOGGED`, levels{"partitions": fail}},
		"archive left off":   {`CREATE TABLE decision_logs_leaving_20260304 (LIKE decision_logs)`, levels{"partitions": warn}},
		"states are near":    {`UPDATE decision_states_mark SET stored_before = now() - interval '1 minute', since = now() - interval '1 day'`, levels{}},
		"states are behind":  {`UPDATE decision_states_mark SET stored_before = now() - interval '2 hours', since = now() - interval '1 day'`, levels{"states": warn}},
		"no default":         {`DROP TABLE decision_logs_default`, levels{"partitions": warn}},
		"strays": {`INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
			VALUES ('far', now() + interval '1 year', '{}', '', 0, 0, 0)`, levels{"partitions": warn}},
		"no tomorrow":       {`DO $$ BEGIN EXECUTE format('DROP TABLE decision_logs_p%s', to_char((now() AT TIME ZONE 'UTC')::date + 1, 'YYYYMMDD')); END $$`, levels{"partitions": warn}},
		"column dropped":    {`ALTER TABLE decision_logs DROP COLUMN bundles`, levels{"columns": fail, "write": fail}},
		"column retyped":    {`ALTER TABLE decision_logs ALTER COLUMN opa_version TYPE int USING 0`, levels{"columns": fail, "write": fail}},
		"column added":      {`ALTER TABLE decision_logs ADD COLUMN tenant text`, levels{}},
		"strict column":     {`ALTER TABLE decision_logs ADD COLUMN tenant text NOT NULL`, levels{"columns": fail, "write": fail}},
		"filled column":     {`ALTER TABLE decision_logs ADD COLUMN tenant text NOT NULL DEFAULT 'us'`, levels{}},
		"optional NOT NULL": {`ALTER TABLE decision_logs ALTER COLUMN path SET NOT NULL`, levels{"columns": warn}},
		"no identity":       {`ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey`, levels{"identity": fail, "write": fail}},
		"another identity": {`ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey;
			CREATE UNIQUE INDEX ON decision_logs (decision_id, ts, path)`, levels{"identity": fail, "write": fail}},
		"partial identity": {`ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey;
			CREATE UNIQUE INDEX ON decision_logs (decision_id, ts) WHERE allowed`, levels{"identity": fail, "write": fail}},
		"turned identity": {`ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey;
			CREATE UNIQUE INDEX ON decision_logs (ts, decision_id) INCLUDE (path)`, levels{}},
		"CHECK for all": {`ALTER TABLE decision_logs ADD CONSTRAINT odd CHECK (false)`, levels{"write": fail}},
		"trigger": {`CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
			CREATE TRIGGER mask BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION f()`, levels{"triggers": warn}},
		"trigger after each row": {after + `FOR EACH ROW EXECUTE FUNCTION f()`, levels{"triggers": warn}},
		"trigger after all rows": {after + `REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION f()`, levels{"triggers": warn}},
		"trigger of a partition": {strings.Replace(after, "ON decision_logs", "ON decision_logs_default", 1) + `FOR EACH ROW EXECUTE FUNCTION f()`, levels{"triggers": warn}},
		"trigger that removes rows": {strings.Replace(after, "RETURN NULL", "DELETE FROM decision_logs WHERE decision_id = NEW.decision_id; RETURN NULL", 1) +
			`FOR EACH ROW EXECUTE FUNCTION f()`, levels{"triggers": warn, "write": fail}},
		"trigger after updates": {strings.Replace(after, "INSERT", "UPDATE", 1) + `FOR EACH ROW EXECUTE FUNCTION f()`, levels{}},
		"trigger switched off":  {after + `FOR EACH ROW EXECUTE FUNCTION f(); ALTER TABLE decision_logs DISABLE TRIGGER move`, levels{}},
		"published":             {`CREATE PUBLICATION own FOR ALL TABLES`, levels{"publication": warn}},
		"published inserts":     {`CREATE PUBLICATION own FOR ALL TABLES WITH (publish = 'insert')`, levels{}},
		"published days":        {`CREATE PUBLICATION own FOR TABLE decision_logs, dead_letters`, levels{}},
		"not durable":           {`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`, levels{"durability": warn}},
		"read-only node":        {`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`, levels{"read_only": fail, "write": fail}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.Exec(t, c.sql)
			checks := checked(open(t, d.URL, 0))
			same(t, worst(checks), c.want)
			for _, c := range checks {
				if c.Detail == "" || (c.Level > schema.OK && c.Hint == "") {
					t.Errorf("nothing to go by: %+v", c)
				}
			}
		})
	}
}

// TestCheck_NamesEachTrigger has a table with both kinds. Docket's own triggers are on other tables.
func TestCheck_NamesEachTrigger(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER mask BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION f();
		CREATE TRIGGER note BEFORE INSERT ON decision_logs FOR EACH STATEMENT EXECUTE FUNCTION f();
		CREATE TRIGGER move AFTER INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION f();
		CREATE TRIGGER tell AFTER INSERT ON decision_logs FOR EACH STATEMENT EXECUTE FUNCTION f()`)
	for _, c := range checked(open(t, d.URL, 0)) {
		if c.Name != "triggers" {
			continue
		}
		same(t, c.Detail, "BEFORE INSERT: mask, note; AFTER INSERT: move, tell")
		for _, of := range []string{"returns NULL", "a dead letter of a good decision"} {
			if !strings.Contains(c.Hint, of) {
				t.Errorf("the hint does not say %q: %s", of, c.Hint)
			}
		}
	}
}

// TestCheck_PublishedTables has what check says be true: Postgres refuses to change these tables, and no others, until they have a
// replica identity.
func TestCheck_PublishedTables(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE PUBLICATION own FOR ALL TABLES`)
	var named, refused string
	for _, c := range checked(open(t, d.URL, 0)) {
		if c.Name == "publication" {
			_, named, _ = strings.Cut(c.Detail, ": ")
		}
	}
	d.Exec(t, `CREATE TABLE refused (name text PRIMARY KEY); DO $$ DECLARE r record; BEGIN
		FOR r IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^(decision|dead_letter|desk)' LOOP
			BEGIN
				EXECUTE format('DELETE FROM %I WHERE false', r.relname);
			EXCEPTION WHEN object_not_in_prerequisite_state THEN INSERT INTO refused VALUES (r.relname);
				WHEN OTHERS THEN NULL;
			END;
		END LOOP;
	END $$`)
	d.Query(t, `SELECT string_agg(name, ', ') FROM refused`, &refused)
	same(t, slices.Sorted(strings.SplitSeq(named, ", ")), slices.Sorted(strings.SplitSeq(refused, ", ")))
}

// TestCheck_Collation has a server whose libraries were updated, and a table that compares ids by their bytes, or in the order of
// the database. The other indexes that it names are those of the ledger.
func TestCheck_Collation(t *testing.T) {
	t.Parallel()
	const updated = `UPDATE pg_database SET datcollversion = '0.1' WHERE datname = current_database()`
	for name, c := range map[string]struct {
		sql   string
		warns bool
		names string // an index that is named, or that is not if it begins with !
	}{
		"not updated":       {`SELECT 1`, false, ""},
		"ids by bytes":      {updated, true, "!decision_logs_pkey"},
		"ids by language":   {`ALTER TABLE decision_logs ALTER decision_id TYPE text COLLATE "default"; ` + updated, true, "decision_logs_pkey"},
		"version not noted": {`UPDATE pg_database SET datcollversion = NULL WHERE datname = current_database()`, false, ""},
		"table of others":   {`CREATE TABLE others (name text PRIMARY KEY); ` + updated, true, "!others_pkey"},
		"collation of others": {`CREATE COLLATION own (provider = icu, locale = 'da'); CREATE INDEX by_path ON decision_logs (path COLLATE own);
			UPDATE pg_collation SET collversion = '0.1' WHERE collname = 'own'`, true, "by_path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := inDanish(t)
			d.Exec(t, c.sql)
			checks := checked(open(t, d.URL, 0))
			want := map[string]schema.Level{}
			if c.warns {
				want["collation"] = schema.Warn
			}
			same(t, worst(checks), want)
			for _, check := range checks {
				if of, not := strings.CutPrefix(c.names, "!"); check.Name == "collation" && c.warns && strings.Contains(check.Detail, of) == not {
					t.Errorf("it names: %s", check.Detail)
				}
			}
		})
	}
}

// inDanish is a database with text in the order of a language.
func inDanish(t *testing.T) *pgtest.DB {
	t.Helper()
	by := pgtest.NewEmpty(t)
	d := &pgtest.DB{Name: by.Name + "_da"}
	u, err := url.Parse(by.URL)
	if err != nil {
		t.Fatal("the URL of a database cannot be read")
	}
	u.Path = "/" + d.Name
	d.URL = u.String()
	by.Exec(t, `CREATE DATABASE `+d.Name+` TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'da'`)
	t.Cleanup(func() { by.Exec(t, `DROP DATABASE `+d.Name+` WITH (FORCE)`) })
	if _, err := schema.New(open(t, d.URL, 0).DB).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCheck_TableWithoutPartitions(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	same(t, worst(checked(open(t, d.URL, 0))), map[string]schema.Level{"partitions": schema.Warn})
	d.Exec(t, `ALTER TABLE decision_logs SET UNLOGGED`)
	same(t, worst(checked(open(t, d.URL, 0))), map[string]schema.Level{"table": schema.Fail})
}

func TestCheck_NamesGrants(t *testing.T) {
	t.Parallel()
	for grants, want := range map[string]string{"": "the role lacks INSERT and SELECT", "SELECT": "the role lacks INSERT", "INSERT": "the role lacks SELECT"} {
		t.Run(grants, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			for _, c := range checked(open(t, d.Role(t, grants), 0)) {
				if c.Name == "grants" {
					same(t, c.Detail, want)
					return
				}
			}
			t.Fatal("grants were not looked at")
		})
	}
}

func TestCheck_ConfirmingTaken(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `DO $$ DECLARE f oid; BEGIN FOR f IN SELECT oid FROM pg_proc WHERE proname = 'pg_logical_emit_message' LOOP
		EXECUTE 'REVOKE EXECUTE ON FUNCTION ' || f::regprocedure || ' FROM PUBLIC'; END LOOP; END $$`)
	found := worst(checked(open(t, d.Role(t, "SELECT, INSERT"), 0)))
	same(t, []schema.Level{found["grants"], found["write"]}, []schema.Level{schema.Fail, schema.Fail})
}

func TestCheck_DatabaseAway(t *testing.T) {
	t.Parallel()
	checks := checked(open(t, "postgres://docket:secret@127.0.0.1:1/docket?sslmode=disable", 0))
	same(t, worst(checks), map[string]schema.Level{"connection": schema.Fail})
}

// checked is what a check of the schema says, with the store's own probe.
func checked(s *store.Store) []schema.Check {
	return schema.New(s.DB).Check(context.Background(), s.Probe)
}

// TestCheck_RowSecurity has policies bind the role: check says that they can refuse and hide rows, before the first one is.
func TestCheck_RowSecurity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql   string
		write schema.Level
	}{
		"takes all":    {`ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON decision_logs USING (true) WITH CHECK (true)`, schema.OK},
		"refuses all":  {`ENABLE ROW LEVEL SECURITY`, schema.Fail},
		"shows no row": {`ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON decision_logs FOR INSERT WITH CHECK (true)`, schema.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.Exec(t, `ALTER TABLE decision_logs `+c.sql)
			found := map[string]schema.Check{}
			for _, check := range checked(open(t, d.Role(t, "SELECT, INSERT"), 0)) {
				found[check.Name] = check
			}
			if grants := found["grants"]; grants.Level != schema.Warn || !strings.Contains(grants.Detail, "row-level security") || !strings.Contains(grants.Hint, "BYPASSRLS") {
				t.Errorf("%+v", grants)
			}
			if write := found["write"]; write.Level != c.write || c.write != schema.OK && !strings.Contains(write.Hint, "row-level security") {
				t.Errorf("%+v", write)
			}
			for _, check := range checked(open(t, d.URL, 0)) { // a superuser is bound by none
				if check.Name == "grants" && check.Level != schema.OK {
					t.Errorf("%+v", check)
				}
			}
		})
	}
}

// TestCheck_Encoding has a database that cannot hold all text: check says so before decisions become dead letters.
func TestCheck_Encoding(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewEmpty(t)
			name := pgx.Identifier{d.Name + "_other"}.Sanitize()
			d.Exec(t, `CREATE DATABASE `+name+` ENCODING '`+encoding+`' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
			t.Cleanup(func() { d.Exec(t, `DROP DATABASE `+name+` WITH (FORCE)`) })
			for _, check := range checked(open(t, strings.Replace(d.URL, d.Name, d.Name+"_other", 1), 0)) {
				if check.Name == "server" && (check.Level != schema.Warn || !strings.Contains(check.Detail, encoding) || !strings.Contains(check.Hint, "22P05")) {
					t.Errorf("%+v", check)
				}
			}
		})
	}
}
