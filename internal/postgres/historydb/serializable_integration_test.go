//go:build integration

package historydb_test

import (
	"testing"
	"time"

	"docket/internal/history/claims"
	"docket/internal/history/state"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

// TestStatements_SerializableByDefault has a database whose transactions are serializable by default. A statement that waits for a row
// works with it once the other has changed it, and does not fail because the other was first.
func TestStatements_SerializableByDefault(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `ALTER DATABASE `+d.Name+` SET default_transaction_isolation = 'serializable'`)
	d.Exec(t, `INSERT INTO decision_states_paths (path, denied_ts, denied_id, stored_at) VALUES ('p', now(), 'd', now());
		INSERT INTO decision_states_revisions (path, revision, first_at, last_at, allowed, denied) VALUES ('p', 'r', now(), now(), 1, 0)`)
	pg := open(t, d.URL, time.Minute).DB
	c, s := historydb.NewClaims(pg), historydb.NewStates(pg, historydb.StatesConfig{})
	const longer = `UPDATE decision_reads SET until = until + interval '1 second'`
	version, err := c.Begin(t.Context(), "k", claims.Low, time.Hour)
	check(t, err)
	for _, one := range []struct {
		name, change string
		act          func() error
	}{
		{"keep a claim", longer, func() error { _, err := c.Keep(t.Context(), "k", version, time.Hour); return err }},
		{"begin a claim", longer, func() (err error) {
			version, err = c.Begin(t.Context(), "k", claims.High, time.Hour)
			return err
		}},
		{"end a claim", longer, func() error { _, err := c.End(t.Context(), "k", version); return err }},
		{"note first denials", `UPDATE decision_states_paths SET denied_id = 'e'`, func() error { return s.ToldDenials(t.Context(), []string{"p"}) }},
		{"note revisions", `UPDATE decision_states_revisions SET allowed = 2`, func() error {
			return s.JudgedRevisions(t.Context(), []state.Judgement{{PathRevision: state.PathRevision{Path: "p", Revision: "r"}, Allowed: 2}})
		}},
		{"remove idle states", `UPDATE decision_states_mark SET states = states`, func() error { _, err := s.Trim(t.Context(), time.Hour, time.Hour); return err }},
		{"remove old claims", longer, func() error { _, err := c.End(t.Context(), "other", 1); return err }},
	} {
		if one.name == "remove old claims" {
			d.Exec(t, `UPDATE decision_reads SET until = now() - interval '2 days'`)
		}
		if err := d.BehindChange(t, one.change, one.act); err != nil {
			t.Errorf("%s: %v", one.name, err)
		}
	}
}
