//go:build integration

package securedpg

import (
	"testing"

	"docket/internal/testkit/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
