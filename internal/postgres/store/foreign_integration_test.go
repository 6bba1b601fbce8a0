//go:build integration

package store_test

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/postgres/db"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/storetest"
)

// foreign are tables as their owners make them: with constraints, triggers and columns of their own that refuse nothing that
// a case stores, and databases with other defaults. NAME is the name of the database.
var foreign = map[string]string{
	"checks": `ALTER TABLE decision_logs ADD CONSTRAINT named CHECK (decision_id <> ''), ADD CONSTRAINT recent CHECK (ts > '0002-01-01 BC'),
		ADD CONSTRAINT object CHECK (raw IS NOT NULL AND jsonb_typeof(raw) <> 'nothing'), ADD CONSTRAINT placed CHECK (source_offset >= 0 AND length(source_topic) > 0)`,
	"a trigger fills a column": `ALTER TABLE decision_logs ADD COLUMN owner text NOT NULL;
		CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.owner = coalesce(NEW.service, 'nobody'); RETURN NEW; END $$;
		CREATE TRIGGER fill BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION fill()`,
	"a trigger alters a column": `CREATE FUNCTION alter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.labels = NULL; NEW.requested_by = left(NEW.requested_by, 3); RETURN NEW; END $$;
		CREATE TRIGGER alter BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION alter()`,
	"triggers copy rows": `CREATE TABLE copies (LIKE decision_logs); CREATE TABLE batches (n bigint, rows bigint); GRANT ALL ON copies, batches TO PUBLIC;
		CREATE FUNCTION each_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO copies SELECT NEW.*; RETURN NULL; END $$;
		CREATE FUNCTION each_batch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO batches SELECT 1, count(*) FROM come; RETURN NULL; END $$;
		CREATE TRIGGER each_row AFTER INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION each_row();
		CREATE TRIGGER each_batch AFTER INSERT ON decision_logs REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION each_batch()`,
	"a deferred trigger": `CREATE TABLE told (id text); GRANT ALL ON told TO PUBLIC;
		CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO told VALUES (NEW.decision_id); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER tell AFTER INSERT ON decision_logs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tell()`,
	"generated columns": `ALTER TABLE decision_logs ADD COLUMN day date GENERATED ALWAYS AS ((ts AT TIME ZONE 'UTC')::date) STORED,
		ADD COLUMN who text DEFAULT current_user NOT NULL`,
	"a foreign key": `CREATE TABLE services (name text PRIMARY KEY); INSERT INTO services VALUES ('shop'), ('docket'); GRANT ALL ON services TO PUBLIC;
		ALTER TABLE decision_logs ADD CONSTRAINT known FOREIGN KEY (service) REFERENCES services`,
	"other types": `ALTER TABLE decision_logs ALTER COLUMN path TYPE varchar(2000), ALTER COLUMN source_topic TYPE varchar(300), ALTER COLUMN service TYPE varchar, ALTER COLUMN raw SET STORAGE EXTERNAL`,
	"odd defaults": `ALTER DATABASE NAME SET client_encoding = 'LATIN1'; ALTER DATABASE NAME SET DateStyle = 'SQL, DMY'; ALTER DATABASE NAME SET TimeZone = 'Asia/Kolkata';
		ALTER DATABASE NAME SET default_transaction_isolation = 'serializable'; ALTER DATABASE NAME SET default_transaction_deferrable = on;
		ALTER DATABASE NAME SET standard_conforming_strings = off; ALTER DATABASE NAME SET bytea_output = 'escape'; ALTER DATABASE NAME SET synchronous_commit = off;
		ALTER DATABASE NAME SET statement_timeout = '30s'; ALTER DATABASE NAME SET lock_timeout = '30s'; ALTER DATABASE NAME SET quote_all_identifiers = on;
		ALTER DATABASE NAME SET enable_indexscan = off; ALTER DATABASE NAME SET plan_cache_mode = 'force_generic_plan'; ALTER DATABASE NAME SET extra_float_digits = -5`,
	"a deferred foreign key": `CREATE TABLE services (name text PRIMARY KEY); INSERT INTO services VALUES ('shop'), ('docket'); GRANT ALL ON services TO PUBLIC;
		ALTER TABLE decision_logs ADD CONSTRAINT known FOREIGN KEY (service) REFERENCES services DEFERRABLE INITIALLY DEFERRED`,
	"slow triggers": `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.0005); RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION slow();
		CREATE TRIGGER slow_after AFTER INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION slow()`,
	"one table":    "",
	"row security": `ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY; CREATE POLICY everything ON decision_logs USING (true) WITH CHECK (true)`,
	"row security and a trigger": `ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY, ADD COLUMN owner text NOT NULL;
		CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.owner = current_user; NEW.labels = NULL; RETURN NEW; END $$;
		CREATE TRIGGER own BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION own();
		CREATE POLICY own ON decision_logs USING (owner = current_user) WITH CHECK (owner = current_user AND labels IS NULL)`,
	"a view": front(""),
}

// insertOnly are the worlds that take rows by INSERT alone, from a role of their own.
var insertOnly = []string{"row security", "row security and a trigger", "a view"}

// looked are the worlds in which rows are looked for before they are committed.
var looked = []string{"triggers copy rows", "a deferred trigger", "slow triggers", "a view"}

// worldsVariable has every case run in every world where it says "all". Otherwise each case runs in one of them.
const worldsVariable = "DOCKET_TEST_WORLDS"

// TestForeignTables runs the promises on tables that their owners altered.
func TestForeignTables(t *testing.T) {
	t.Parallel()
	worlds := slices.Sorted(maps.Keys(foreign))
	for i, c := range storetest.Cases() {
		for w, world := range worlds {
			if i%len(worlds) != w && os.Getenv(worldsVariable) != "all" {
				continue
			}
			if slices.Contains(insertOnly, world) && c.OfCopy() || world == "a view" && c.OfTables() || slices.Contains(looked, world) && c.OfCommit() {
				continue
			}
			t.Run(world+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				c.Run(t, newForeign(t, world))
			})
		}
	}
}

// TestForeignKey_EmptyTable has a table that takes neither the row that is made up nor one of the decisions. That is parked
// first, as the row that it refers to may come.
func TestForeignKey_EmptyTable(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE TABLE services (name text PRIMARY KEY); INSERT INTO services VALUES ('shop');
		ALTER TABLE decision_logs ADD CONSTRAINT known FOREIGN KEY (service) REFERENCES services`)
	c := carry(t, open(t, d.URL, time.Minute), false, 1, []*kgo.Record{
		sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-b", midday, map[string]any{"path": "bank/allow"})), sourceRecord(3, event("id-c", midday, nil)),
	})
	same(t, c.homes, []string{"1 row", "2 parked 23503", "3 row"})
}

// newForeign is a server with that table.
func newForeign(t testing.TB, world string) storetest.Server {
	t.Helper()
	database := pgtest.New
	if world == "one table" {
		database = pgtest.NewPlain
	}
	d := database(t)
	if ddl := foreign[world]; ddl != "" {
		d.Exec(t, strings.ReplaceAll(ddl, "NAME", `"`+d.Name+`"`))
	}
	s := server{d, d.NewProxy(t)}
	if slices.Contains(insertOnly, world) {
		as, err := url.Parse(client(t, d))
		if err != nil {
			t.Fatal("the URL of a role cannot be read")
		}
		through, err := url.Parse(s.proxy.URL)
		if err != nil {
			t.Fatal("the URL of a proxy cannot be read")
		}
		through.User, through.RawQuery = as.User, as.RawQuery
		r := restricted{s, db.Config{URL: through.String()}}
		if world == "a view" {
			return viewed{r}
		}
		return r
	}
	return s
}

// restricted is a server whose clients have a role that row security is for.
type restricted struct {
	server
	cfg db.Config
}

func (r restricted) Config() db.Config           { return r.cfg }
func (r restricted) NoCopy(testing.TB) db.Config { return r.cfg }
func (r restricted) Busy(t testing.TB)           { r.Sessions(t, 1, "decision_logs (decision_id, ts, path,") }

// viewed is a server whose clients see a view of the table.
type viewed struct{ restricted }

// Break does to the view what is done to the table: the table goes only after the view that is made of it.
func (v viewed) Break(t testing.TB, code string) {
	if code != "42P01" && code != "42703" {
		v.server.Break(t, code)
		return
	}
	v.Exec(t, `DROP SCHEMA front CASCADE`)
	v.server.Break(t, code)
	if code == "42703" {
		v.Exec(t, front(""))
	}
}

// Of two records of a batch that exclude each other the earlier has the row, whichever of them the server names.
func TestExclusion_TheEarlierHasTheRow(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	d.Exec(t, `ALTER TABLE decision_logs ADD CONSTRAINT one EXCLUDE (req_id WITH =)`)
	of := func(offset int64, id string, number int) *kgo.Record {
		return sourceRecord(offset, event(id, midday, map[string]any{"req_id": number}))
	}
	c := carry(t, open(t, d.URL, time.Minute), false, 1, []*kgo.Record{of(1, "id-z", 7), of(2, "id-a", 7), of(3, "id-b", 8), of(4, "id-c", 9)})
	same(t, c.homes, []string{"1 row", "2 dead_letter 23P01", "3 row", "4 row"})
}
