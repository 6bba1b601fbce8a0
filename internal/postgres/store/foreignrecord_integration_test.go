//go:build integration

package store_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// before is a trigger of each row before it is in, after is one of each row that is in.
const (
	before = `; CREATE TRIGGER own BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION own()`
	after  = `; CREATE TRIGGER own AFTER INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION own()`
)

// These are triggers after the insert: of the batch, with its rows as the table come, and of each row at the commit.
const (
	afterBatch = `; CREATE TRIGGER own AFTER INSERT ON decision_logs REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION own()`
	deferred   = `; CREATE CONSTRAINT TRIGGER own AFTER INSERT ON decision_logs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION own()`
)

// deleting is a function of a trigger for each row that deletes the row at the path odd, with the rights of the table's owner.
var deleting = definer(`IF NEW.path = 'odd' THEN DELETE FROM decision_logs WHERE decision_id = NEW.decision_id AND ts = NEW.ts; END IF; RETURN NULL;`)

// definer is own with the rights of the table's owner.
func definer(body string) string {
	return strings.Replace(own(body), "LANGUAGE plpgsql", "LANGUAGE plpgsql SECURITY DEFINER SET search_path = public", 1)
}

// own is a function of a trigger.
func own(body string) string {
	return `CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + body + ` END $$`
}

// secured has a policy of the table bind whoever comes.
func secured(policy string) string {
	return `; ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON decision_logs ` + policy
}

// front is a view in a schema of its own that those find who look there first.
func front(condition string) string {
	return `CREATE SCHEMA front; CREATE VIEW front.decision_logs AS SELECT * FROM public.decision_logs ` + condition + `;
		GRANT USAGE ON SCHEMA front TO PUBLIC; GRANT SELECT, INSERT ON front.decision_logs TO PUBLIC`
}

// refusing are tables of others that do not take the decision at the path odd. It goes to home, and to second when it comes
// again, if that differs.
var refusing = map[string]struct{ ddl, home, second string }{
	"a CHECK":                            {`ALTER TABLE decision_logs ADD CONSTRAINT own CHECK (path <> 'odd')`, "dead_letter 23514", ""},
	"a BEFORE trigger refuses":           {own(`IF NEW.path = 'odd' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW;`) + before, "dead_letter P0001", ""},
	"an AFTER trigger refuses":           {own(`IF NEW.path = 'odd' THEN RAISE EXCEPTION 'no'; END IF; RETURN NULL;`) + after, "dead_letter P0001", ""},
	"a trigger of the batch refuses":     {own(`IF EXISTS (SELECT FROM come WHERE path = 'odd') THEN RAISE EXCEPTION 'no'; END IF; RETURN NULL;`) + afterBatch, "dead_letter P0001", ""},
	"an AFTER trigger deletes":           {deleting + after, "dead_letter internal", ""},
	"an AFTER trigger moves":             {`CREATE TABLE aside (LIKE decision_logs); ` + definer(`IF NEW.path = 'odd' THEN WITH gone AS (DELETE FROM decision_logs WHERE decision_id = NEW.decision_id RETURNING *) INSERT INTO aside SELECT * FROM gone; END IF; RETURN NULL;`) + after, "dead_letter internal", ""},
	"an AFTER trigger alters the time":   {definer(`UPDATE decision_logs SET ts = ts - interval '1 second' WHERE decision_id = NEW.decision_id AND path = 'odd'; RETURN NULL;`) + after, "dead_letter internal", ""},
	"a trigger of the batch deletes":     {definer(`DELETE FROM decision_logs AS d USING come WHERE d.decision_id = come.decision_id AND come.path = 'odd'; RETURN NULL;`) + afterBatch, "dead_letter internal", ""},
	"a deferred trigger deletes":         {deleting + deferred, "dead_letter internal", ""},
	"a trigger of a partition deletes":   {deleting + strings.Replace(after, "ON decision_logs", "ON decision_logs_before", 1), "dead_letter internal", ""},
	"one behind a view deletes":          {front("") + `; ` + deleting + after, "dead_letter internal", ""},
	"row security, and one that deletes": {deleting + after + secured(`USING (true) WITH CHECK (true)`), "dead_letter internal", ""},
	"a BEFORE trigger swallows":          {own(`IF NEW.path = 'odd' THEN RETURN NULL; END IF; RETURN NEW;`) + before, "dead_letter internal", ""},
	"a BEFORE trigger alters the time":   {own(`IF NEW.path = 'odd' THEN NEW.ts = NEW.ts - interval '1 second'; END IF; RETURN NEW;`) + before, "dead_letter internal", ""},
	"a BEFORE trigger is slow":           {own(`IF NEW.path = 'odd' THEN PERFORM pg_sleep(600); END IF; RETURN NEW;`) + before, "dead_letter too_slow", ""},
	"an AFTER trigger is slow":           {own(`IF NEW.path = 'odd' THEN PERFORM pg_sleep(600); END IF; RETURN NULL;`) + after, "dead_letter too_slow", ""},
	"a deferred trigger refuses":         {own(`IF NEW.path = 'odd' THEN RAISE EXCEPTION 'no'; END IF; RETURN NULL;`) + deferred, "dead_letter P0001", ""},
	"a deferred foreign key":             {`CREATE TABLE paths (path text PRIMARY KEY); INSERT INTO paths VALUES ('shop/allow'); ALTER TABLE decision_logs ADD CONSTRAINT own FOREIGN KEY (path) REFERENCES paths DEFERRABLE INITIALLY DEFERRED`, "parked 23503", ""},
	"a NOT NULL column from a trigger":   {`ALTER TABLE decision_logs ADD COLUMN owner text NOT NULL; ` + own(`NEW.owner = nullif(NEW.path, 'odd'); RETURN NEW;`) + before, "dead_letter 23502", ""},
	"a generated column":                 {`ALTER TABLE decision_logs ADD COLUMN part int GENERATED ALWAYS AS (1 / (path <> 'odd')::int) STORED`, "dead_letter 22012", ""},
	"row security":                       {secured(`USING (true) WITH CHECK (path <> 'odd')`)[2:], "parked 42501", ""},
	"row security hides":                 {secured(`USING (path <> 'odd') WITH CHECK (true)`)[2:], "parked 42501", ""},
	"row security and a trigger":         {own(`NEW.requested_by = NEW.path; RETURN NEW;`) + before + secured(`USING (true) WITH CHECK (requested_by <> 'odd')`), "parked 42501", ""},
	"row security and one that masks":    {own(`NEW.raw = '{}'; NEW.path = nullif(NEW.path, 'odd'); RETURN NEW;`) + before + secured(`USING (true) WITH CHECK (path IS NOT NULL)`), "parked 42501", ""},
	"a CHECK behind a view":              {front("") + `; ALTER TABLE decision_logs ADD CONSTRAINT own CHECK (path <> 'odd')`, "dead_letter 23514", ""},
	"a view with a check of its own":     {front(`WHERE path <> 'odd' WITH CHECK OPTION`), "dead_letter 44000", ""},
	"a view, and a trigger that refuses": {front("") + `; ` + own(`IF NEW.path = 'odd' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW;`) + before, "dead_letter P0001", ""},
	"a view, and one that swallows":      {front("") + `; ` + own(`IF NEW.path = 'odd' THEN RETURN NULL; END IF; RETURN NEW;`) + before, "dead_letter internal", ""},
}

// TestForeignRecord has a table that does not take one decision among others: exactly that one has no row, the others
// have theirs, and the offset moves on. The same holds when all of it comes again.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	for name, c := range refusing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.second == "" {
				c.second = c.home
			}
			if !strings.HasSuffix(c.home, "too_slow") {
				refused(t, c.ddl, c.home, c.second, time.Minute)
				return
			}
			// The server ends each try, of which there are many, at four fifths of the time. If the machine then pauses for a
			// second, the client ends it.
			for try := 1; !refused(t, c.ddl, c.home, c.second, 5*time.Second); try++ {
				if try == 3 {
					t.Fatal("the client ended a try before the server, three times")
				}
			}
		})
	}
}

// refused carries records into a table that does not take one of them. It returns false if the client ended a try.
func refused(t *testing.T, ddl, home, second string, patience time.Duration) bool {
	t.Helper()
	d := pgtest.New(t)
	d.Exec(t, ddl)
	db := open(t, client(t, d), patience)
	odd := sourceRecord(3, event("id-odd", midday, map[string]any{"path": "odd"}))
	records := []*kgo.Record{
		sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-b", midday, nil)), odd,
		sourceRecord(4, event("id-c", midday, nil)), sourceRecord(5, event("id-d", midday, nil)),
	}
	ended := func(c *carried) bool { return slices.Contains(c.homes, "3 parked timeout") }
	first := carry(t, db, false, 1, records)
	if ended(first) {
		return false
	}
	same(t, first.homes, []string{"1 row", "2 row", "3 " + home, "4 row", "5 row"})
	same(t, first.commit, int64(6))
	rows := 4
	if home == "row" {
		rows = 5
	}
	same(t, d.Count(t), rows)
	again := carry(t, db, false, 1, append(records, sourceRecord(6, event("id-e", midday, nil))))
	if ended(again) {
		return false
	}
	same(t, again.homes, []string{"1 duplicate", "2 duplicate", "3 " + second, "4 duplicate", "5 duplicate", "6 row"})
	same(t, d.Count(t), rows+1)
	return true
}

// client is the URL of a role that policies bind, and that finds a view before the table.
func client(t testing.TB, d *pgtest.DB) string {
	t.Helper()
	u, err := url.Parse(d.Role(t, "SELECT, INSERT"))
	if err != nil {
		t.Fatal("the URL of a role cannot be read")
	}
	query := u.Query()
	query.Set("search_path", "front,public")
	u.RawQuery = query.Encode()
	return u.String()
}

// TestForeignRecord_InsteadOf has a view whose trigger stores elsewhere. Postgres does not tell what that did with a row, so
// nothing is stored into it: the partition holds, and check says why.
func TestForeignRecord_InsteadOf(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"stores":   `NEW.stored_at = now(); INSERT INTO public.decision_logs SELECT NEW.*; RETURN NEW;`,
		"swallows": `RETURN NULL;`,
		"lies":     `RETURN NEW;`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.Exec(t, front("")+`; `+own(body)+`; CREATE TRIGGER own INSTEAD OF INSERT ON front.decision_logs FOR EACH ROW EXECUTE FUNCTION own()`)
			db := open(t, client(t, d), time.Minute)
			c := carry(t, db, false, 1, []*kgo.Record{sourceRecord(1, event("id-a", midday, nil)), sourceRecord(2, event("id-b", midday, nil))})
			if len(c.homes)+len(c.sent) > 0 || c.commit != -1 || len(c.holds) != 1 || c.holds[0].Code != "42P10" {
				t.Errorf("homes %v, sent %d, committed %d, held %+v", c.homes, len(c.sent), c.commit, c.holds)
			}
			same(t, d.Count(t), 0)
			levels := map[string]schema.Level{}
			for _, check := range schema.New(db.DB).Check(t.Context(), db.Probe) {
				levels[check.Name] = check.Level
			}
			same(t, []schema.Level{levels["table"], levels["identity"], levels["write"]}, []schema.Level{schema.Warn, schema.Fail, schema.Fail})
		})
	}
}
