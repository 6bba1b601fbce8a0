//go:build integration

package schema_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
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
