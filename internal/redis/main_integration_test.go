//go:build integration

package redis

import (
	"testing"

	"docket/internal/testkit/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
