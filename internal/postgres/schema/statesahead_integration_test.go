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

// Earlier releases noted each revision as told that they had compared. It is compared again when it has twice as many decisions.
func TestMigrate_ToldRevisionsAreJudgedAgain(t *testing.T) {
	t.Parallel()
	d := pgtest.NewEmpty(t)
	db := open(t, d.URL, 0)
	for _, before := range []string{"", `INSERT INTO decision_states_revisions (path, revision, first_at, last_at, allowed, denied, told) VALUES ('p', 'old', now(), now(), 90, 30, true), ('p', 'young', now(), now(), 9, 3, false);
		DELETE FROM goose_db_version WHERE version_id >= 29`, `DELETE FROM goose_db_version WHERE version_id >= 29`} {
		if before != "" {
			d.Exec(t, before)
		}
		if _, err := schema.New(db.DB).Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var all string
	d.Query(t, `SELECT string_agg(concat_ws(' ', revision, told, judged_allowed, judged_denied), ', ' ORDER BY revision) FROM decision_states_revisions`, &all)
	if want := "old f 90 30, young f 0 0"; all != want {
		t.Errorf("%s, want %s", all, want)
	}
}
