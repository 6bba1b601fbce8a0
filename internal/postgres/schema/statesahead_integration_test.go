//go:build integration

package schema_test

import (
	"testing"

	"docket/internal/postgres/schema"
	"docket/internal/testkit/pgtest"
)

// A state that is dated far ahead would keep its answer for years. It is removed, and the answers say that it may be.
func TestMigrate_RemovesStatesAhead(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	db := open(t, d.URL, 0)
	migrate := func() {
		t.Helper()
		if _, err := schema.New(db.DB).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names string, states int, trimmed bool) {
		d.Query(t, `SELECT (SELECT coalesce(string_agg(subject, ',' ORDER BY subject), '') FROM decision_states), states, trimmed_before IS NOT NULL FROM decision_states_mark`, &names, &states, &trimmed)
		return names, states, trimmed
	}
	add := func(subject, ahead string) {
		d.Exec(t, `INSERT INTO decision_states (subject, path, verdict, revision, hash, since, since_id, last_seen, decisions, version_ts, version_id)
			VALUES ('`+subject+`', 'p', 'denied', '', '', now(), 'd', now(), 1, now() + interval '`+ahead+`', 'd');
			UPDATE decision_states_mark SET states = states + 1; DELETE FROM goose_db_version WHERE version_id >= 29`)
	}
	migrate()
	add("now", "50 minutes")
	migrate()
	if names, states, trimmed := left(); names != "now" || states != 1 || trimmed {
		t.Errorf("nothing is ahead: %q, %d states, removed: %v", names, states, trimmed)
	}
	add("ahead", "10 years")
	migrate()
	if names, states, trimmed := left(); names != "now" || states != 1 || !trimmed {
		t.Errorf("one is ahead: %q, %d states, removed: %v", names, states, trimmed)
	}
}
