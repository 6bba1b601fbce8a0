//go:build integration

package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgtest"
)

func TestLookup_ByIdentity(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t).URL
	pg := open(t, url, 20*time.Second)
	save(t, pg, row("a", noon, `{"n":1,"m":[]}`), row("a", noon.Add(time.Second), `{"n":2}`), row("b", noon, `{"n":3}`))
	reader, err := store.Open(db.Config{URL: url, ReadOnly: true}, nop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	found, err := reader.Lookup(t.Context(), []store.Sought{
		{ID: "none", Time: noon}, {ID: "a", Time: noon.Add(999), Raw: []byte(` {"m":[], "n":1.0}`)}, {ID: "b", Time: noon, Raw: []byte(`{"n":4}`)},
		{ID: "a", Time: noon.Add(time.Second), Raw: []byte(`{"n":"\u0000"}`)}, {ID: "b", Time: noon},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]bool{}
	for _, f := range found {
		got[f.N] = f.Equal
		if f.Topic != "decision-logs" || f.Partition != 3 || f.Offset != 42 || f.Index != 1 || f.StoredAt.IsZero() || f.ID == "" || f.Time.Nanosecond() != noon.Nanosecond() {
			t.Errorf("%+v", f)
		}
	}
	same(t, got, map[int]bool{1: true, 2: false, 3: false, 4: true})
	rows, err := reader.LookupID(t.Context(), "a")
	if err != nil || len(rows) != 2 || !rows[0].Time.Equal(noon) {
		t.Errorf("%+v, %v", rows, err)
	}
	if rows, err := reader.LookupID(t.Context(), "none"); err != nil || len(rows) != 0 {
		t.Errorf("%+v, %v", rows, err)
	}
}

func TestTry_TakenBack(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t).URL
	db := open(t, url, 20*time.Second)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `ALTER TABLE decision_logs ADD CONSTRAINT no CHECK (NOT raw ? 'no')`); err != nil {
		t.Fatal(err)
	}
	save(t, db, row("there", noon, `{"n":1}`))
	for _, c := range []struct {
		row  pipeline.Row
		want pipeline.Outcome
		code string
	}{
		{row("new", noon, `{}`), pipeline.Stored, ""}, {row("there", noon, `{"n":1.0}`), pipeline.Present, ""}, {row("there", noon, `{"n":2}`), pipeline.Conflicting, ""},
		{row("bad", noon, `{"no":1}`), 0, "23514"}, {row("deep", noon, `{"n":"\u0000"}`), 0, "22P05"},
	} {
		got, err := db.Try(t.Context(), c.row)
		if got != c.want || (err == nil) != (c.code == "") || err != nil && errclass.Classify(err).Code != c.code {
			t.Errorf("%s: %v, %v", c.row.Log.ID, got, err)
		}
	}
	var n int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM decision_logs`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// A trigger masks the stored payload. A look-up finds the row of a decision by the bytes that it came in. One that asks for
// the stored payload is told that it is another.
func TestLookup_MaskedRows(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE FUNCTION mask() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.raw = '"masked"'; RETURN NEW; END $$;
		CREATE TRIGGER mask BEFORE INSERT ON decision_logs FOR EACH ROW EXECUTE FUNCTION mask()`)
	db := open(t, d.URL, 20*time.Second)
	save(t, db, row("a", noon, `{"n":1}`))
	found, err := db.Lookup(t.Context(), []store.Sought{
		{ID: "a", Time: noon, Raw: []byte(`{"n":1}`), Came: true}, {ID: "a", Time: noon, Raw: []byte(`{"n":2}`), Came: true}, {ID: "a", Time: noon, Raw: []byte(`{"n":1}`)},
	})
	if err != nil || len(found) != 3 {
		t.Fatalf("%+v, %v", found, err)
	}
	same(t, []bool{found[0].Equal, found[1].Equal, found[2].Equal}, []bool{true, false, false})
	out, err := db.Compare(t.Context(), []*decision.Log{row("a", noon, `{"n":1}`).Log, row("a", noon, `{"n":2}`).Log, row("b", noon, `{}`).Log})
	if err != nil {
		t.Fatal(err)
	}
	same(t, out, []pipeline.Outcome{pipeline.Present, pipeline.Conflicting, 0})
}

// TestLookup_DeferrableByDefault has a database whose transactions that only read wait for those that write. A look-up does not.
func TestLookup_DeferrableByDefault(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.OddSettings(t)
	conn, err := pgx.Connect(t.Context(), d.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), `BEGIN; CREATE TABLE other (n int); SELECT count(*) FROM decision_logs`); err != nil {
		t.Fatal(err)
	}
	db := open(t, d.URL, 10*time.Second)
	same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
	if found, err := db.LookupID(t.Context(), "a"); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}
