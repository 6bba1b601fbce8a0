//go:build integration

package worker_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// TestMain needs containers only if the environment names no server.
func TestMain(m *testing.M) {
	if os.Getenv(pgtest.ServerVariable) != "" {
		goleak.VerifyTestMain(m)
		return
	}
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
	testenv.Main(m)
}
