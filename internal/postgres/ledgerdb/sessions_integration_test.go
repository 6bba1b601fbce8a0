//go:build integration

package ledgerdb_test

import (
	"testing"
	"time"

	"docket/internal/postgres/ledgerdb"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/sessiontest"
)

func TestSessions_Suite(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	sessiontest.Suite(t, ledgerdb.NewSessions(open(t, d.URL, time.Minute).DB))
}
