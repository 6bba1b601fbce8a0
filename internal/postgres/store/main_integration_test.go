//go:build integration

package store

import (
	"testing"

	"docket/internal/testkit/testenv"
)

// TestMain starts containers only for tests that ask for one: most take the server that the environment names, if any.
func TestMain(m *testing.M) { testenv.Main(m) }
