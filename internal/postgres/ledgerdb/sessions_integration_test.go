//go:build integration

package ledgerdb_test

import (
	"fmt"
	"testing"
	"time"

	"docket/internal/desk/console/session"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/sessiontest"
)

func TestSessions_Suite(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	sessiontest.Suite(t, ledgerdb.NewSessions(open(t, d.URL, time.Minute).DB))
}

// TestSessions_ManyLogouts: the provider may end sessions for days before anybody logs in. Old logouts are removed.
func TestSessions_ManyLogouts(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	s := ledgerdb.NewSessions(open(t, d.URL, time.Minute).DB)
	now := sessiontest.Noon
	for n := range 20 {
		now = now.Add(session.Remembered / 2)
		if _, err := s.EndFrom(t.Context(), session.Origin{Subject: fmt.Sprint(n)}, now, now); err != nil {
			t.Fatal(err)
		}
	}
	var rows int
	d.Query(t, `SELECT count(*) FROM desk_sessions`, &rows)
	same(t, rows, 2)
	if over, err := s.Ended(t.Context(), session.Origin{Subject: "18"}, now.Add(-session.Remembered), now); err != nil || !over {
		t.Errorf("a logout that is still remembered was removed: %v", err)
	}
}
