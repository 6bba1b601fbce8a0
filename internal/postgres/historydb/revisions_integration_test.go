//go:build integration

package historydb_test

import (
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/history/state"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

func TestRevisions_SeenLastFirst(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	pg, err := store.Open(db.Config{URL: d.URL}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Close)
	rows := historydb.NewReader(pg.DB)
	if _, _, err := rows.Revisions(t.Context(), nil, 10); !errors.Is(err, state.ErrNone) {
		t.Fatalf("without states: %v", err)
	}
	d.Exec(t, `UPDATE decision_states_mark SET stored_before = now(), since = now() - interval '1 day';
		INSERT INTO decision_states_revisions (path, revision, first_at, last_at, allowed, denied)
		SELECT CASE n % 2 WHEN 0 THEN 'a/b' ELSE 'c' END, 'r' || n, now() - make_interval(hours => 20 - n), now() - make_interval(hours => 10 - n), n, 1 FROM generate_series(1, 5) AS n`)
	for _, q := range []struct {
		paths []string
		limit int
		want  string
	}{{nil, 10, "r5 r4 r3 r2 r1 "}, {nil, 2, "r5 r4 "}, {[]string{"a/*"}, 10, "r4 r2 "}, {[]string{"c", "x"}, 10, "r5 r3 r1 "}} {
		all, mark, err := rows.Revisions(t.Context(), q.paths, q.limit)
		got := ""
		for _, r := range all {
			got += r.Revision + " "
		}
		if err != nil || got != q.want || mark.StoredBefore.IsZero() || all[0].Denied != 1 {
			t.Errorf("%v: %q, want %q: %v", q.paths, got, q.want, err)
		}
	}
}
