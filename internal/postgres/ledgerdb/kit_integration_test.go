//go:build integration

package ledgerdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"docket/internal/errclass"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

func init() {
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
}

// Short names for what these tests say in every second line.
var (
	open = pgtest.Open

	letter = pgtest.Letter
	home   = pgtest.Returned
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)

func same(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

func wantCode(t testing.TB, out any, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error but %v, want %s", out, want)
	}
	if got := errclass.Classify(err).Code; got != want {
		t.Fatalf("code %s, want %s: %v", got, want, err)
	}
}

func pgxConnect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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
