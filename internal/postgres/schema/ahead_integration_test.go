//go:build integration

package schema_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

func made(t testing.TB, db *store.Store, ahead int) int {
	t.Helper()
	n, err := schema.New(db.DB).Patient().MakePartitions(context.Background(), ahead)
	if err != nil {
		t.Fatalf("make partitions: %v", err)
	}
	return n
}

func TestMakePartitions_ByARoleThatMayInsert(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	worker := d.Role(t, "SELECT, INSERT")
	same(t, made(t, open(t, worker, 0), 7), 0) // the migration made those
	var sum atomic.Int64
	var all sync.WaitGroup
	for range 6 {
		db := open(t, worker, 0)
		all.Go(func() {
			for range 3 {
				n, err := schema.New(db.DB).Patient().MakePartitions(context.Background(), 100)
				if err != nil {
					t.Errorf("make partitions: %v", err)
				}
				sum.Add(int64(n))
			}
		})
	}
	all.Wait()
	same(t, sum.Load(), int64(93))
	var owners, days int
	d.Query(t, `SELECT count(DISTINCT relowner), count(*) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'decision_logs'::regclass`, &owners, &days)
	same(t, []int{owners, days}, []int{1, 103})
	db := open(t, worker, 0)
	save(t, db, full("a", day(100), 1), full("b", day(101), 1))
	same(t, place(t, d, "a"), named(100))
	same(t, place(t, d, "b"), "decision_logs_default")
}

func TestMakePartitions_NotForEverybody(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	reader := open(t, d.Role(t, "SELECT"), 0)
	_, err := schema.New(reader.DB).MakePartitions(context.Background(), 30)
	wantCode(t, nil, err, "42501")
	db := open(t, d.URL, 0)
	for _, ahead := range []int{-1, 367, 1 << 30} {
		_, err := schema.New(db.DB).MakePartitions(context.Background(), ahead)
		wantCode(t, nil, err, "22023")
	}
	same(t, made(t, open(t, pgtest.NewPlain(t).URL, 0), 7), 0)
	same(t, made(t, db, 366), 359)
}

// The function does not work on tables in the caller's own schema, or among its temporary tables.
func TestMakePartitions_OwnSchemaAlone(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	worker := d.Role(t, "SELECT, INSERT")
	var n int
	err := exec(worker, `CREATE TEMP TABLE decision_logs (decision_id text, ts timestamptz) PARTITION BY RANGE (ts);
		CREATE FUNCTION pg_temp.to_char(date, text) RETURNS text LANGUAGE sql AS 'SELECT ''odd''';
		SET search_path = pg_temp, public; SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'SQL, DMY';
		SELECT public.decision_logs_make_partitions(9)`)
	if err != nil {
		t.Fatal(err)
	}
	d.Query(t, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'public.decision_logs'::regclass`, &n)
	same(t, n, 12)
	save(t, open(t, worker, 0), row("late", day(9).Add(12*time.Hour-time.Microsecond), `{}`), row("early", day(9).Add(-12*time.Hour), `{}`))
	same(t, []string{place(t, d, "late"), place(t, d, "early")}, []string{named(9), named(9)})
}

func TestMakePartitions_StraysMove(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	rows := []pipeline.Row{full("a", day(8), 1), full("b", day(9).Add(12*time.Hour-time.Microsecond), 1), full("c", day(10), 1)}
	save(t, db, rows...)
	same(t, place(t, d, "a"), "decision_logs_default")
	same(t, made(t, db, 9), 2)
	same(t, []string{place(t, d, "a"), place(t, d, "b"), place(t, d, "c")}, []string{named(8), named(9), "decision_logs_default"})
	same(t, save(t, db, rows...), []pipeline.Outcome{present, present, present})
	same(t, d.Count(t), 3)
}

// A day that somebody took away by hand does not come back, nor does it keep the others from being made.
func TestMakePartitions_DetachedDay(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	d.Exec(t, `ALTER TABLE decision_logs DETACH PARTITION `+named(3))
	same(t, made(t, db, 8), 1)
	save(t, db, row("a", day(3), `{}`))
	same(t, place(t, d, "a"), "decision_logs_default")
}

func TestMakePartitions_BusyDefaultPartition(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	end := begun(t, d, `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
		VALUES ('far', now() + interval '1 year', '{}', '', 0, 0, 0)`)
	_, err := schema.New(db.DB).Patient().MakePartitions(context.Background(), 20)
	wantCode(t, nil, err, "55P03")
	save(t, db, row("a", day(0), `{}`))
	end()
	same(t, made(t, db, 20), 13)
}

func TestMigrate_WhileWritersStore(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	stop := pgtest.Writers(t, d, 3)
	wait(t, d, 300)
	met := map[string]bool{}
	err := schema.Partition(context.Background(), open(t, d.URL, 0).DB, 0, false, func(step string) error {
		met[step] = true
		wait(t, d, 100)
		return nil
	})
	if err != nil {
		t.Errorf("partition: %v", err)
	}
	n, parked := stop()
	same(t, d.Count(t), n)
	if parked == 0 || len(met) < 5 {
		t.Errorf("%d parked, steps %v: nothing was put to the test", parked, met)
	}
	var strays int
	d.Query(t, `SELECT count(*) FROM decision_logs_default`, &strays)
	if strays == 0 {
		t.Error("nothing lies in the default partition")
	}
}

// wait is until so many more rows are there.
func wait(t *testing.T, d *pgtest.DB, rows int) {
	t.Helper()
	for from := d.Count(t); d.Count(t) < from+rows; {
		if t.Failed() {
			t.Fatal("the writers failed")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestRetention_WhileWritersStore(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `SELECT decision_logs_make_partitions(30)`)
	db := open(t, d.URL, 0)
	for n := range 30 {
		save(t, db, full(fmt.Sprint("old", n), day(n), 1))
	}
	stop := pgtest.Writers(t, d, 2)
	for n := range 30 {
		wait(t, d, 20)
		d.Exec(t, `SET lock_timeout = '1min'; DROP TABLE `+named(n))
	}
	n, parked := stop()
	var left int
	d.Query(t, `SELECT count(*) FROM decision_logs WHERE decision_id LIKE 'old%'`, &left)
	same(t, left, 0)
	if parked > 0 {
		t.Errorf("%d were parked", parked)
	}
	if d.Count(t) > n {
		t.Errorf("%d rows of %d", d.Count(t), n)
	}
}

// begun runs SQL in a transaction that stays open until end is called.
func begun(t *testing.T, d *pgtest.DB, sql string) (end func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, d.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "BEGIN; "+sql); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { _ = conn.Close(ctx) })
	t.Cleanup(end)
	return end
}

// exec runs statements as whoever the URL is for.
func exec(url, sql string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}
