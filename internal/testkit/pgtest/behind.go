package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// BehindChange changes rows in a transaction, and starts act. It commits once act waits for one of these rows, and returns the error of act.
func (db *DB) BehindChange(t testing.TB, change string, act func() error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.writable(t))
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED; "+change); err != nil {
		t.Fatalf("%s: %v", change, err)
	}
	done := make(chan error, 1)
	go func() { done <- act() }()
	for waits := false; !waits; {
		select {
		case err := <-done:
			t.Fatalf("%s: it waited for no row: %v", change, err)
		default:
		}
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid)`).Scan(&waits); err != nil {
			t.Fatalf("look for who waits: %v", err)
		}
	}
	if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
		t.Fatalf("commit: %v", err)
	}
	return <-done
}
