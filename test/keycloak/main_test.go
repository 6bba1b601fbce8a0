//go:build integration

package keycloak

import (
	"testing"

	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

func TestMain(m *testing.M) {
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
	testenv.Main(m)
}
