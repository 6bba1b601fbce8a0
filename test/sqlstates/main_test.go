//go:build integration

package sqlstates

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

var tableTo = flag.String("table", "", "file that the table of what was seen is written to")

// TestMain needs containers only where the environment names no server.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(pgtest.ServerVariable) != "" {
		goleak.VerifyTestMain(m)
		return
	}
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
	testenv.Main(m)
}
