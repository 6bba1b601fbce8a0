//go:build integration

package schema_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
	"docket/migrations"
)

// lockWorld is a schema of an earlier version, and sessions beside a migration.
type lockWorld struct {
	*pgtest.DB
	t   *testing.T
	ctx context.Context
	s   *schema.Schema
	log *lines
}

// lines is a log that is read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// has reports whether a line has all of these words.
func (l *lines) has(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}

func newLockWorld(t *testing.T, version int64) *lockWorld {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	w := &lockWorld{DB: pgtest.NewEmpty(t), t: t, ctx: ctx, log: &lines{}}
	of, err := db.Open(db.Config{URL: w.URL}, zerolog.New(w.log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(of.Close)
	w.s = schema.New(of)
	if err := w.s.MigrateTo(ctx, version); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *lockWorld) connect(name string) *pgx.Conn {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	w.must(conn, `SET application_name = '`+name+`'`)
	return conn
}

func (w *lockWorld) must(conn *pgx.Conn, sql string) {
	w.t.Helper()
	if _, err := conn.Exec(w.ctx, sql); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// await waits until SQL says true.
func (w *lockWorld) await(conn *pgx.Conn, sql string) {
	w.t.Helper()
	w.until(sql, func() (is bool) {
		if err := conn.QueryRow(w.ctx, sql).Scan(&is); err != nil {
			w.t.Fatal(err)
		}
		return is
	})
}

func (w *lockWorld) until(what string, is func() bool) {
	w.t.Helper()
	for !is() {
		select {
		case <-w.ctx.Done():
			w.t.Fatal("not so: " + what)
		case <-time.After(time.Millisecond):
		}
	}
}

// migrate does it in the background.
func (w *lockWorld) migrate() (done chan error) {
	done = make(chan error, 1)
	go func() {
		_, err := w.s.Migrate(w.ctx)
		done <- err
	}()
	return done
}

// TestMigrate_ShortLocks has another session use the ledger in a long transaction, as pg_dump does. The desk's writes are let
// through while the migration waits, the log names that session, and the migration is done once it ends.
func TestMigrate_ShortLocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from        int64
		table, mode string // of the long transaction
	}{
		{8, "dead_letters", "ACCESS SHARE"},
		{20, "dead_letter_jobs", "ACCESS SHARE"},
		{23, "dead_letter_outbox", "ACCESS SHARE"},
		{32, "dead_letters", "ROW EXCLUSIVE"},
	} {
		t.Run(fmt.Sprintf("from %d", c.from), func(t *testing.T) {
			t.Parallel()
			w := newLockWorld(t, c.from)
			dump, desk := w.connect("long dump"), w.connect("desk")
			w.must(dump, `BEGIN; LOCK TABLE `+c.table+` IN `+c.mode+` MODE`)
			done := w.migrate()
			for range 2 {
				w.await(desk, `SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = '`+c.table+`'::regclass`)
				w.must(desk, `SET lock_timeout = '20s'; BEGIN; LOCK TABLE `+c.table+` IN ROW EXCLUSIVE MODE; COMMIT`) // as a write does
			}
			w.until("the log names the session", func() bool {
				return w.log.has("migration blocked", fmt.Sprintf("session %d (long?dump), since 2", dump.PgConn().PID()))
			})
			w.must(dump, `COMMIT`)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestMigrate_IndexBesideSnapshot has another session keep a snapshot while an index is made concurrently: that waits, keeps nobody
// from writing, and is named. The migration is killed there and leaves an invalid index. The next one makes it again, whatever
// lock_timeout the role has.
func TestMigrate_IndexBesideSnapshot(t *testing.T) {
	t.Parallel()
	w := newLockWorld(t, 30)
	dump, desk := w.connect("dump"), w.connect("desk")
	w.Exec(t, `ALTER DATABASE "`+w.Name+`" SET lock_timeout = '10ms'`)
	snapshot := func() { w.must(dump, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM dead_letters`) }
	const (
		waits = `SELECT count(*) > 0 FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE NOT granted AND locktype = 'virtualxid' AND query_start < clock_timestamp() - interval '3 seconds'`
		invalid = `SELECT count(*) > 0 FROM pg_index WHERE indexrelid = to_regclass('dead_letters_decided') AND NOT indisvalid`
		valid   = `SELECT count(*) > 0 FROM pg_index WHERE indexrelid = to_regclass('dead_letters_decided') AND indisvalid`
	)
	snapshot()
	done := w.migrate()
	w.await(desk, waits)
	w.must(desk, `SET lock_timeout = '20s'; BEGIN; LOCK TABLE dead_letters IN ROW EXCLUSIVE MODE; COMMIT`)
	w.until("the log names the session", func() bool {
		return w.log.has("migration blocked", fmt.Sprintf("session %d (dump), since 2", dump.PgConn().PID()))
	})
	w.await(desk, `SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_locks WHERE NOT granted AND locktype = 'virtualxid'`)
	if err := <-done; err == nil {
		t.Fatal("it was killed")
	}
	w.await(desk, invalid)
	w.must(dump, `COMMIT`)
	snapshot() // the index that is left is dropped and made again beside another one
	done = w.migrate()
	w.await(desk, waits)
	w.must(dump, `COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.await(desk, valid)
}

// TestMigrate_SearchIndexesBesideSnapshot: the indexes of searches wait for an old transaction, too, whatever lock_timeout the
// role has.
func TestMigrate_SearchIndexesBesideSnapshot(t *testing.T) {
	t.Parallel()
	w := newLockWorld(t, migrations.Indexes-1)
	dump, desk := w.connect("dump"), w.connect("desk")
	w.Exec(t, `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
		SELECT n, now() - n * interval '1 ms', '{}', 't', 0, n, 0 FROM generate_series(1, 10001) AS n`)
	w.Exec(t, `ALTER DATABASE "`+w.Name+`" SET lock_timeout = '10ms'`)
	w.must(dump, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM decision_logs`)
	done := make(chan error, 1)
	go func() { done <- w.s.MigrateTo(w.ctx, migrations.Indexes) }()
	w.until("an index waits", func() (waits bool) {
		select {
		case err := <-done:
			t.Fatal(err)
		default:
		}
		if err := desk.QueryRow(w.ctx, `SELECT count(*) > 0 FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE NOT granted AND locktype = 'virtualxid' AND query_start < clock_timestamp() - interval '1 second'`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	w.must(dump, `COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.await(desk, `SELECT bool_and(indisvalid) FROM pg_index`)
}
