//go:build integration

package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

func init() {
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
}

const (
	stored  = pipeline.Stored
	present = pipeline.Present
)

// Short names for what these tests say in every second line.
var (
	open = pgtest.Open
	save = pgtest.Store
	row  = pgtest.Row
	full = pgtest.Full
	day  = pgtest.Day
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)

var nop = zerolog.Nop()

func some[T any](v T) sql.Null[T] { return sql.Null[T]{V: v, Valid: true} }

func TestStore_NoRows(t *testing.T) {
	t.Parallel()
	out, err := open(t, "postgres://127.0.0.1:1/none", 0).Store(context.Background(), nil, false)
	if err != nil || len(out) != 0 {
		t.Fatalf("got %v, %v", out, err)
	}
}

func TestStore_EachFieldInItsColumn(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	save(t, open(t, d.URL, 0), full("id", noon, 3))
	same(t, save(t, open(t, server{DB: d}.NoCopy(t).URL, 0), full("inserted", noon, 3)), []pipeline.Outcome{stored}) // by INSERT
	var got []string
	d.Query(t, `SELECT array_agg(concat_ws('|', decision_id, extract(epoch FROM ts), path, allowed, requested_by, req_id, opa_id, opa_version, service,
		labels->>'id', bundles->'shop'->>'revision', raw->'input'->>'pad', source_topic, source_partition, source_offset, source_index,
		uploaded_by, stored_at > now() - interval '1 hour') ORDER BY decision_id) FROM decision_logs`, &got)
	const rest = "|1714564800.123456|shop/orders/allow|t|10.0.0.1:5000|77|opa-1|1.4.2|shop|opa-1|r7|xxx|decision-logs|3|42|1|spiffe://shop/opa-1|t"
	same(t, got, []string{"id" + rest, "inserted" + rest})
}

func TestStore_AbsentIsNull(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	r := row("id", noon, `{}`)
	r.Log.Path = some("") // there, and empty
	r.Log.Allowed = some(false)
	inserted := row("inserted", noon, `{}`)
	inserted.Log.Path, inserted.Log.Allowed = some(""), some(false)
	save(t, open(t, d.URL, 0), r, full("other", noon, 1))
	save(t, open(t, server{DB: d}.NoCopy(t).URL, 0), inserted) // by INSERT
	for _, id := range []string{"id", "inserted"} {
		var nulls, empty, allowed string
		d.Query(t, `SELECT num_nulls(requested_by, req_id, opa_id, opa_version, service, labels, bundles, uploaded_by)::text, '<' || path || '>', allowed::text
			FROM decision_logs WHERE decision_id = '`+id+`'`, &nulls, &empty, &allowed)
		same(t, []string{nulls, empty, allowed}, []string{"8", "<>", "false"})
	}
}

func TestStore_TimesToTheMicrosecond(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	for i, c := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(2024, 1, 2, 3, 4, 5, 123456999, time.UTC), "2024-01-02 03:04:05.123456 AD"},
		{time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC), "1969-12-31 23:59:59.999999 AD"},
		{time.Date(0, 1, 1, 0, 0, 0, 1999, time.UTC), "0001-01-01 00:00:00.000001 BC"},
		{time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC), "0002-12-31 00:00:00.000000 BC"},
		{time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.FixedZone("", -23*3600)), "10000-01-01 22:59:59.999999 AD"},
	} {
		id := fmt.Sprint(i)
		same(t, save(t, db, row(id, c.at, `{}`)), []pipeline.Outcome{stored})
		same(t, save(t, db, row(id, c.at, `{}`)), []pipeline.Outcome{present})
		var got string
		d.Query(t, `SELECT to_char(ts AT TIME ZONE 'UTC', 'FMYYYY-MM-DD HH24:MI:SS.US AD') FROM decision_logs WHERE decision_id = '`+id+`'`, &got)
		same(t, strings.TrimLeft(got, "0"), strings.TrimLeft(c.want, "0"))
	}
}

func TestStore_LargeBatchesAndRows(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, time.Minute)
	same(t, save(t, db, full("large", noon, 900<<10)), []pipeline.Outcome{stored})
	same(t, save(t, db, full("large", noon, 900<<10)), []pipeline.Outcome{present})
	rows := make([]pipeline.Row, 10_000)
	for i := range rows {
		rows[i] = full(fmt.Sprintf("id-%d", i), noon.Add(time.Duration(i)*time.Millisecond), 100)
	}
	for i, o := range save(t, db, rows...) {
		if o != stored {
			t.Fatalf("row %d: %d", i, o)
		}
	}
	same(t, d.Count(t), 10_001)
}

func TestPlans_DecisionByIndex(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	var plan string
	d.Query(t, `EXPLAIN (FORMAT json) SELECT * FROM decision_logs WHERE decision_id = 'x'`, &plan)
	if !strings.Contains(plan, "_pkey") || strings.Contains(plan, "Seq Scan") {
		t.Fatalf("no index in %s", plan)
	}
}

func TestStore_PartitionedTable(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `ALTER TABLE decision_logs RENAME TO was;
		CREATE TABLE decision_logs (LIKE was INCLUDING DEFAULTS, PRIMARY KEY (decision_id, ts)) PARTITION BY RANGE (ts);
		CREATE TABLE decision_logs_2024 PARTITION OF decision_logs FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')`)
	db := open(t, d.URL, 0)
	rows := []pipeline.Row{full("a", noon, 1), full("b", noon, 1)}
	same(t, save(t, db, rows...), []pipeline.Outcome{stored, stored})
	same(t, save(t, db, rows...), []pipeline.Outcome{present, present})
}

func TestClientEncoding_OfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN1", "WIN1252"} {
		d := pgtest.New(t)
		d.Exec(t, fmt.Sprintf(`ALTER DATABASE %s SET client_encoding = %s`, d.Name, encoding))
		db := open(t, d.URL, 0)
		same(t, save(t, db, row("é", noon, `{"name":"Ángel Ý"}`)), []pipeline.Outcome{stored})
		same(t, save(t, db, row("é", noon, `{"name":"Ángel Ý"}`)), []pipeline.Outcome{present})
		var id string
		d.Query(t, `SELECT encode(convert_to(decision_id, 'UTF8'), 'hex') FROM decision_logs`, &id)
		same(t, id, "c3a9")
	}
}
