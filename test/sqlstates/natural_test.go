//go:build integration

package sqlstates

import (
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
	"docket/internal/testkit/pgtest"
)

// inBatch is a fault that the server finds by itself in one record of eight.
var inBatch = map[string]struct {
	sql, more string // the table's constraint, and the odd record
	column    string
	end       place
	code      string
}{
	"23502 field that its column needs": {`ALTER TABLE decision_logs ALTER COLUMN path SET NOT NULL`, `"path":null`, "path", deadLetter, "23502"},
	"23514 CHECK":                       {`ALTER TABLE decision_logs ADD CONSTRAINT odd CHECK (path <> 'odd')`, `"path":"odd"`, "", deadLetter, "23514"},
	"23503 parent that never comes": {`CREATE TABLE parents (k text PRIMARY KEY);
		ALTER TABLE decision_logs ADD k text GENERATED ALWAYS AS (raw->>'k') STORED REFERENCES parents`, `"k":"1"`, "", deadLetter, "23503"},
	"23505 of another key":  {`CREATE UNIQUE INDEX ON decision_logs ((raw->>'k')); ` + taken, `"k":"1"`, "", exhausted, "23505"},
	"23P01 EXCLUDE":         {`ALTER TABLE decision_logs ADD EXCLUDE ((raw->>'k') WITH =); ` + taken, `"k":"1"`, "", deadLetter, "23P01"},
	"22001 too long":        {`ALTER TABLE decision_logs ADD short varchar(5) GENERATED ALWAYS AS (CAST(raw->>'k' AS text)) STORED`, `"k":"123456"`, "", deadLetter, "22001"},
	"22P02 no number":       {`ALTER TABLE decision_logs ADD n int GENERATED ALWAYS AS ((raw->>'k')::int) STORED`, `"k":"one"`, "", deadLetter, "22P02"},
	"22003 beyond its type": {`ALTER TABLE decision_logs ADD n smallint GENERATED ALWAYS AS ((raw->>'k')::smallint) STORED`, `"k":"99999"`, "", deadLetter, "22003"},
	"22P05 no such letter":  {`ALTER TABLE decision_logs ADD CHECK (convert_to(path, 'LATIN1') IS NOT NULL)`, `"path":"→"`, "", deadLetter, "22P05"},
	"22007 no date":         {`ALTER TABLE decision_logs ADD CHECK ((raw->>'k')::date IS NOT NULL OR raw->>'k' IS NULL)`, `"k":"soon"`, "", deadLetter, "22007"},
	"22012 by zero":         {`ALTER TABLE decision_logs ADD n int GENERATED ALWAYS AS (1 / (raw->>'k')::int) STORED`, `"k":"0"`, "", deadLetter, "22012"},
	"2201B no pattern":      {`ALTER TABLE decision_logs ADD CHECK ('' !~ ('x' || (raw->>'k')))`, `"k":"["`, "", deadLetter, "2201B"},
	"54000 index entry":     {`CREATE INDEX ON decision_logs (path)`, `"path":"` + incompressible(9000) + `"`, "", deadLetter, "54000"},
	"54001 nested too deep": {`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET max_stack_depth = ''100kB''', current_database()); END $$`,
		`"deep":` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000), "", deadLetter, "54001"},
	"57014 slow record": {`CREATE FUNCTION pgtest_slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.raw ? 'slow' THEN PERFORM pg_sleep(60); END IF; RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION pgtest_slow()`, `"slow":1`, "", deadLetter, "too_slow"},
}

// taken is another client's row, with the key of the odd record.
const taken = `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
	VALUES ('x', now(), '{"k":"1"}', 'other', 0, 0, 0)`

func TestPartition_MissingParksTheRecord(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	w := newWorld(t, cluster(t, "p-"), pg, role(t, pg), "p-")
	pg.Exec(t, partitioned)
	w.send(logOf("a", noon, ""), oddLog(`"timestamp":"1999-01-01T00:00:00Z"`), logOf("b", noon, ""))
	c := w.start(3)
	c.housed(3, home.Row, home.Parked)
	if homes, _ := c.count(); homes[home.Parked] != 1 {
		t.Errorf("homes %v, want the odd one alone parked", homes)
	}
	r := w.replay() // alone there, it is asked about at its own time: no record's fault, so no attempt is spent
	if held, ok := r.held(3); ok && (held.Reason != "database_refuses" || held.Code != "23514") {
		t.Errorf("holds for %+v", held)
	}
	pg.Exec(t, `CREATE TABLE early PARTITION OF decision_logs FOR VALUES FROM ('1999-01-01') TO ('2000-01-01')`)
	r.housed(1, home.Row)
	if n := len(w.forwarded("parking")) + len(w.forwarded("dlq")) + len(w.forwarded("parking-dlq")); n != 1 {
		t.Errorf("%d records were forwarded, want the one that was parked", n)
	}
}

// The table is being partitioned, which takes a while. Records that it refuses meanwhile keep all their attempts.
func TestMigration_ParksRecordsBeyondTheCut(t *testing.T) {
	t.Parallel()
	pg := pgtest.NewPlain(t)
	w := newWorld(t, cluster(t, "c-"), pg, role(t, pg), "c-")
	pg.Exec(t, `ALTER TABLE decision_logs ADD CONSTRAINT decision_logs_before_cut CHECK (ts < '2090-01-01') NOT VALID`)
	w.send(logOf("a", noon, ""), oddLog(`"timestamp":"2099-01-01T00:00:00Z"`), logOf("b", noon, ""))
	c := w.start(3)
	c.housed(3, home.Row, home.Parked)
	r := w.replay()
	r.housed(2*maxAttempts, home.Parked)
	pg.Exec(t, `ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_before_cut`)
	r.housed(1, home.Row)
	if n := len(w.forwarded("dlq")) + len(w.forwarded("parking-dlq")); n != 0 {
		t.Errorf("%d records were given up", n)
	}
	if len(c.holds)+len(r.holds) > 0 {
		t.Errorf("held: %v %v", c.holds, r.holds)
	}
}

const partitioned = `ALTER TABLE decision_logs RENAME TO was;
	CREATE TABLE decision_logs (LIKE was INCLUDING DEFAULTS, PRIMARY KEY (decision_id, ts)) PARTITION BY RANGE (ts);
	GRANT SELECT, INSERT ON decision_logs TO PUBLIC;
	CREATE TABLE decision_logs_2026 PARTITION OF decision_logs FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')`

func incompressible(n int) string {
	source := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[source.IntN(64)]
	}
	return string(b)
}

// shortTimeout is for a store that is meant to exceed it. The server stops at four fifths of it. The rest must be
// enough for its answer, or the client's own deadline ends the call under another code.
const shortTimeout = 9 * time.Second

func TestRecord_RealErrorsOfOneRecord(t *testing.T) {
	t.Parallel()
	for name, c := range inBatch {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := pgtest.New
			if c.code == "23505" || c.code == "23P01" { // a partitioned table cannot have them
				made = pgtest.NewPlain
			}
			pg := made(t)
			w := newWorld(t, cluster(t, "n-"), pg, role(t, pg), "n-")
			pg.Exec(t, c.sql)
			want := expectation{odd: deadLetter, neighbours: row, end: c.end, code: c.code, retries: "0"}
			switch {
			case c.end == exhausted, c.code == "23503":
				want.odd = parked
			case c.code == "too_slow":
				w.timeout, w.pauses = shortTimeout, nil
			}
			w.one(want, oddLog(c.more))
			if dead := w.forwarded("dlq"); len(dead) == 1 && c.column != "" {
				w.headers(dead[0], map[string]string{envelope.FailureColumn: c.column})
			}
		})
	}
}

// oddLog makes the odd record; a member of more replaces the usual one of its name.
func oddLog(more string) string {
	members := []string{`"decision_id":"odd"`}
	for _, ordinary := range []string{`"timestamp":"` + noon.Format(time.RFC3339) + `"`, `"path":"sqlstates/allow"`} {
		if name, _, _ := strings.Cut(ordinary, ":"); !strings.HasPrefix(more, name+":") {
			members = append(members, ordinary)
		}
	}
	return "{" + strings.Join(append(members, more), ",") + "}"
}

// ofTheSetUp are faults that hit all records, the probe row among them. ROLE and DATABASE stand for their names.
var ofTheSetUp = map[string]struct{ breaks, repairs, code string }{
	"42P01 table renamed":             {`ALTER TABLE decision_logs RENAME TO gone`, `ALTER TABLE gone RENAME TO decision_logs`, "42P01"},
	"42703 column dropped":            {`ALTER TABLE decision_logs DROP COLUMN opa_id`, `ALTER TABLE decision_logs ADD opa_id text; `, "42703"},
	"42804 column of another type":    {`ALTER TABLE decision_logs ALTER opa_version TYPE int USING 0`, `ALTER TABLE decision_logs ALTER opa_version TYPE text`, "42804"},
	"42P10 identity dropped":          {`ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey`, `ALTER TABLE decision_logs ADD PRIMARY KEY (decision_id, ts)`, "42P10"},
	"42501 grant taken":               {`REVOKE INSERT ON decision_logs FROM ROLE`, `GRANT INSERT ON decision_logs TO ROLE`, "42501"},
	"0A000 rule in the way":           {`CREATE RULE swallow AS ON INSERT TO decision_logs DO INSTEAD NOTHING`, `DROP RULE swallow ON decision_logs`, "0A000"},
	"23502 column that all lack":      {`ALTER TABLE decision_logs ADD tenant text NOT NULL`, `ALTER TABLE decision_logs DROP COLUMN tenant`, "23502"},
	"23514 CHECK that nothing passes": {`ALTER TABLE decision_logs ADD CONSTRAINT no CHECK (false)`, `ALTER TABLE decision_logs DROP CONSTRAINT no`, "23514"},
	"23514 no partition at all": {strings.ReplaceAll(partitioned, "'2026-01-01') TO ('2027", "'2000-01-01') TO ('2001"),
		`CREATE TABLE later PARTITION OF decision_logs FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')`, "23514"},
	"2200H sequence exhausted": {`CREATE SEQUENCE s MAXVALUE 2; SELECT nextval('s'), nextval('s'); GRANT USAGE ON s TO PUBLIC; ALTER TABLE decision_logs ADD n int DEFAULT nextval('s')`,
		`ALTER SEQUENCE s NO MAXVALUE`, "2200H"},
	"25006 read-only node":       {`ALTER DATABASE DATABASE SET default_transaction_read_only = on`, `ALTER DATABASE DATABASE RESET default_transaction_read_only`, "25006"},
	"28000 role may not log in":  {`ALTER ROLE ROLE NOLOGIN`, `ALTER ROLE ROLE LOGIN`, "28000"},
	"28P01 password changed":     {`ALTER ROLE ROLE PASSWORD 'another'`, `ALTER ROLE ROLE PASSWORD 'role'`, "28P01"},
	"42501 may not connect":      {`REVOKE CONNECT ON DATABASE DATABASE FROM PUBLIC`, `GRANT CONNECT ON DATABASE DATABASE TO PUBLIC`, "42501"},
	"53300 no connection left":   {`ALTER ROLE ROLE CONNECTION LIMIT 0`, `ALTER ROLE ROLE CONNECTION LIMIT -1`, "53300"},
	"55P03 table locked":         {"", "", "55P03"},
	"57014 every statement slow": {"", "", "57014"},
}

func TestSetUp_HoldsAndRecovers(t *testing.T) {
	t.Parallel()
	for name, c := range ofTheSetUp {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := pgtest.New(t)
			w := newWorld(t, cluster(t, "s-"), pg, role(t, pg), "s-")
			breaks, repairs := w.act(c.breaks), w.act(c.repairs)
			switch c.code {
			case "55P03":
				w.timeout = shortTimeout
				var unlock func()
				breaks, repairs = func() { unlock = pg.Lock(t) }, func() { unlock() }
			case "57014":
				w.timeout = shortTimeout
				breaks, repairs = func() { pg.Slow(t, time.Minute) }, func() { pg.KillSessions(t); pg.Calm(t) }
			}
			want := expect(c.code)
			if c.code == "23514" {
				want.reason = "database_refuses" // with a constraint's name or without
			}
			breaks()
			if c.code == "55P03" { // a reader from outside waits for the lock too
				w.blind(want, repairs)
				return
			}
			if want.code = c.code; c.code == "42P01" { // and there is no table to look at
				w.blind(want, repairs)
				return
			}
			w.all(want, repairs)
		})
	}
}

// act returns a func that runs SQL as the harness.
func (w *world) act(sql string) func() {
	u, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	sql = strings.ReplaceAll(strings.ReplaceAll(sql, "DATABASE DATABASE", "DATABASE "+w.pg.Name), "FROM ROLE", "FROM "+u.User.Username())
	sql = strings.ReplaceAll(strings.ReplaceAll(sql, "TO ROLE", "TO "+u.User.Username()), "ROLE ROLE", "ROLE "+u.User.Username())
	return func() { w.pg.Exec(w.t, sql) }
}

// blind is all without reading the table while it is broken.
func (w *world) blind(want expectation, repair func()) {
	w.t.Helper()
	w.send(logOf("a", noon, ""), logOf("b", noon, ""))
	c := w.start(1)
	if want.parks {
		c.housed(2, home.Parked)
	} else if held, ok := c.held(3); ok && (held.Reason != want.reason || held.Code != want.held) {
		w.t.Errorf("holds for %s %s, want %s %s", held.Reason, held.Code, want.reason, want.held)
	}
	repair()
	if want.parks {
		r := w.replay()
		r.housed(2, home.Row)
	} else {
		c.housed(2, home.Row)
	}
	if got := w.rows(); !slices.Equal(got, []string{"a", "b"}) {
		w.t.Errorf("rows %v", got)
	}
}

func TestSessions_TerminatedAreRetried(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	w := newWorld(t, cluster(t, "k-"), pg, role(t, pg), "k-")
	pg.Lock(t)
	w.send(logOf("a", noon, ""))
	c := w.start(1)
	pg.Sessions(t, 1, "COPY decision_logs")
	if n := pg.KillSessions(t); n != 2 {
		t.Errorf("ended %d sessions, want the consumer's and that of the lock", n)
	}
	c.housed(1, home.Row)
	homes, retries := c.count()
	if !maps.Equal(homes, map[home.Home]int{home.Row: 1}) || retries != 1 {
		t.Errorf("homes %v after %d retries, want the row after one", homes, retries)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) != 1 || c.seen[0].Code != "57P01" {
		t.Errorf("seen %v, want 57P01", c.seen)
	}
}
