//go:build integration

package ledgerdb_test

import (
	"testing"
	"time"

	"docket/internal/postgres/ledgerdb"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/viewstest"
)

func TestViews_Suite(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	viewstest.Suite(t, ledgerdb.NewViews(open(t, d.URL, time.Minute).DB))
}
