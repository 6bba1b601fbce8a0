//go:build integration

package schema_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// TestMigrate_ShortLocks has another session read the ledger in a long transaction, as pg_dump does. The desk's writes are let
// through while the migration waits, and it is done once that session ends.
func TestMigrate_ShortLocks(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	s := schema.New(open(t, d.URL, 0).DB)
	if err := s.MigrateTo(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(ctx, d.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	must := func(conn *pgx.Conn, sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	dump, desk := connect(), connect()
	must(dump, `BEGIN; LOCK TABLE dead_letter_jobs IN ACCESS SHARE MODE`)
	done := make(chan error, 1)
	go func() {
		_, err := s.Migrate(ctx)
		done <- err
	}()
	for tries := 0; tries < 2; {
		var waits bool
		if err := desk.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'dead_letter_jobs'::regclass`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits {
			tries++
			must(desk, `SET lock_timeout = '20s'; BEGIN; LOCK TABLE dead_letter_jobs IN ROW EXCLUSIVE MODE; COMMIT`) // as a write does
		}
	}
	must(dump, `COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
