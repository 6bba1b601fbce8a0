//go:build integration

package api_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"docket/internal/testkit/testenv"
)

// TestMain needs containers only if the environment names no server.
func TestMain(m *testing.M) {
	if os.Getenv("DOCKET_TEST_DATABASE_URL") != "" {
		goleak.VerifyTestMain(m)
		return
	}
	testenv.Main(m)
}
