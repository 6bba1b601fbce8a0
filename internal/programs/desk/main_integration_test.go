//go:build integration

package desk

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// TestMain needs containers only where the environment names no server.
func TestMain(m *testing.M) {
	if os.Getenv("DOCKET_TEST_DATABASE_URL") != "" {
		goleak.VerifyTestMain(m)
		return
	}
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
	testenv.Main(m)
}
