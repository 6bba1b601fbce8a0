//go:build integration

package historydb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// TestReader_OddSettings has a database whose sessions show dates and bytes in other forms, and read statements in another way.
// Decisions are found, also those of a day that is being archived, and the next days get their partitions.
func TestReader_OddSettings(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE TABLE decision_logs_leaving_20260304 (LIKE decision_logs INCLUDING ALL);
		INSERT INTO decision_logs_leaving_20260304 (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('left', '2026-03-04 12:00Z', '{}', 't', 0, 0, 0)`)
	d.OddSettings(t)
	pg := open(t, d.URL, 0)
	save(t, pg, row("a", noon, `{}`), row("b", time.Now(), `{}`))
	r := historydb.NewReader(pg.DB)
	found, err := r.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 10, Oldest: true})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, one := range found.Decisions {
		ids = append(ids, one.ID)
	}
	same(t, ids, []string{"a", "left", "b"})
	if all, err := r.ByID(t.Context(), "left"); err != nil || len(all) != 1 {
		t.Errorf("by id: %v, %v", all, err)
	}
	if n, err := schema.New(pg.DB).MakePartitions(t.Context(), 12); err != nil || n == 0 {
		t.Errorf("%d days made, %v", n, err)
	}
	if _, err := r.Count(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.Stats(t.Context(), reader.StatsQuery{}); err != nil {
		t.Error(err)
	}
}

// TestArchive_TimeoutsOfTheRole has a database that ends long transactions. A day is archived all the same.
func TestArchive_TimeoutsOfTheRole(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	var limit string // Postgres 17 is the first with one for transactions
	a.Query(t, `SELECT max(name) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')`, &limit)
	writer, err := pgx.Connect(t.Context(), a.URL)
	check(t, err)
	defer func() { check(t, writer.Close(context.Background())) }()
	a.Exec(t, `ALTER DATABASE `+a.Name+` SET `+limit+` = '700ms'`)
	wrote := make(chan error, 1)
	a.c.Told = func(s archive.Step) {
		if s != archive.StepVerified {
			return
		}
		_, err := writer.Exec(t.Context(), `BEGIN; LOCK TABLE decision_logs IN ROW EXCLUSIVE MODE`)
		check(t, err)
		go func() { // the archive waits for longer than the limit
			_, err := writer.Exec(t.Context(), `DO $$ BEGIN
				WHILE NOT EXISTS (SELECT FROM pg_locks WHERE relation = 'decision_logs'::regclass AND NOT granted) LOOP PERFORM pg_sleep(0.01); END LOOP;
				PERFORM pg_sleep(1);
			END $$; COMMIT`)
			wrote <- err
		}()
	}
	done, err := a.c.Archive(t.Context(), a.day, false)
	if err != nil || !done.Dropped {
		t.Errorf("%+v, %v", done, err)
	}
	check(t, <-wrote)
}

// TestLook_ItsSettingsAlone: a question is run with its settings, and leaves none of them on the connection.
func TestLook_ItsSettingsAlone(t *testing.T) {
	t.Parallel()
	d := open(t, pgtest.New(t).URL, 1)
	r := historydb.NewReader(d.DB)
	const shown = `SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('transaction_read_only'), current_setting('transaction_isolation'), current_setting('jit'),
		current_setting('plan_cache_mode'), current_setting('max_parallel_workers_per_gather'), current_setting('enable_seqscan'), current_setting('enable_hashjoin'), current_setting('enable_mergejoin'))`
	var before, after string
	scan := func(into *string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error { return tx.QueryRow(ctx, shown).Scan(into) }
	}
	if err := d.Pool().QueryRow(t.Context(), shown).Scan(&before); err != nil {
		t.Fatal(err)
	}
	for scans, want := range map[bool]string{
		false: "54s on repeatable read off force_custom_plan 0 off off off",
		true:  "54s on repeatable read off force_custom_plan 0 on on on",
	} {
		var during string
		if err := r.Look(t.Context(), time.Minute, scans, scan(&during)); err != nil || during != want {
			t.Errorf("scans %v: %q, %v, want %q", scans, during, err, want)
		}
	}
	if err := d.Pool().QueryRow(t.Context(), shown).Scan(&after); err != nil || after != before {
		t.Errorf("afterwards %q, %v, before %q", after, err, before)
	}
}

// TestAtOnce_ItsSettingsAlone has a request of a look leave nothing behind: neither a setting nor, after an error, a connection
// that the pool has to close.
func TestAtOnce_ItsSettingsAlone(t *testing.T) {
	t.Parallel()
	d := open(t, pgtest.New(t).URL, 1)
	const shown = `SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('transaction_read_only'), current_setting('transaction_isolation'), current_setting('jit'),
		current_setting('plan_cache_mode'), current_setting('enable_seqscan'))`
	const settled = `SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('transaction_read_only'), current_setting('jit'), current_setting('plan_cache_mode'), current_setting('enable_seqscan')), pg_backend_pid()`
	var before, during, after string
	var pid, same int
	if err := d.Pool().QueryRow(t.Context(), settled).Scan(&before, &pid); err != nil {
		t.Fatal(err)
	}
	ask := func(sql string, read func(pgx.BatchResults) error) error {
		return d.Pool().AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
			return db.AtOnce(t.Context(), conn.Conn(), time.Second, pgx.ReadCommitted, func(b *pgx.Batch) { b.Queue(sql) }, read)
		})
	}
	if err := ask(shown, func(a pgx.BatchResults) error { return a.QueryRow().Scan(&during) }); err != nil || during != "1s on read committed off force_custom_plan off" {
		t.Errorf("%q, %v", during, err)
	}
	own := errors.New("the caller's own")
	for sql, want := range map[string]func(error) bool{
		`SELECT 1 FROM no_such_table`: func(err error) bool {
			s, ok := db.AsServerError(err)
			return ok && s.SQLState() == pgerrcode.UndefinedTable
		},
		`SELECT pg_sleep(60)`: func(err error) bool {
			s, ok := db.AsServerError(err)
			return ok && s.SQLState() == pgerrcode.QueryCanceled
		},
		`SELECT 1`: func(err error) bool { return errors.Is(err, own) },
	} {
		// A pause of a second of the machine costs the connection, but not each time.
		for try := 1; ; try++ {
			if err := d.Pool().QueryRow(t.Context(), settled).Scan(&after, &pid); err != nil || after != before {
				t.Fatalf("%q, %v, before %q", after, err, before)
			}
			err := ask(sql, func(a pgx.BatchResults) error {
				if _, err := a.Exec(); err != nil {
					return err
				}
				return own
			})
			if !want(err) {
				t.Errorf("%s: %v", sql, err)
			}
			if err := d.Pool().QueryRow(t.Context(), settled).Scan(&after, &same); err != nil || after != before {
				t.Errorf("after %s %q, %v, before %q", sql, after, err, before)
			}
			if same == pid {
				break
			}
			if try == 5 {
				t.Fatalf("%s costs the connection each time", sql)
			}
		}
	}
}
