//go:build integration

package historydb_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

func init() {
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
}

// Short names for what these tests say in every second line.
var (
	open = pgtest.Open
	save = pgtest.Store
	row  = pgtest.Row
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)

func same(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}
