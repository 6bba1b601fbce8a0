//go:build integration

package historydb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
)

// TestArchive_HiddenRowsStay: a policy can hide rows of a day from the owner of its table, too. They are in no archive then, so the
// day is not dropped.
func TestArchive_HiddenRowsStay(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 50)
	owner := a.Name + "_owner"
	a.Exec(t, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT CREATE, USAGE ON SCHEMA public TO %[1]s;
		DO $$ DECLARE r record; BEGIN
			FOR r IN SELECT oid::regclass AS name FROM pg_class WHERE relname LIKE 'decision_logs%%' AND relkind IN ('r', 'p') LOOP EXECUTE format('ALTER TABLE %%s OWNER TO %[1]s', r.name); END LOOP;
		END $$; ALTER TABLE decision_logs_p20260304 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
		CREATE POLICY few ON decision_logs_p20260304 USING (decision_id <> 'd7')`, owner))
	t.Cleanup(func() { a.Exec(t, fmt.Sprintf(`DROP OWNED BY %[1]s CASCADE; DROP ROLE %[1]s`, owner)) })
	pg, err := store.Open(db.Config{URL: a.URL + "&role=" + owner}, zerolog.Nop())
	check(t, err)
	defer pg.Close()
	c := a.c
	c.Table = historydb.NewArchives(pg.DB)
	done, err := c.Archive(t.Context(), a.day, false)
	var refused *archive.CannotError
	if !errors.As(err, &refused) || !strings.Contains(refused.Why, "row-level security") || done.Dropped {
		t.Errorf("%+v, %v", done, err)
	}
	var n int
	if a.Query(t, `SELECT count(*) FROM decision_logs`, &n); n != 50 {
		t.Errorf("%d rows are left", n)
	}
	a.Exec(t, `ALTER TABLE decision_logs_p20260304 NO FORCE ROW LEVEL SECURITY`)
	if done, err := c.Archive(t.Context(), a.day, false); err != nil || !done.Dropped || done.Rows != 50 {
		t.Errorf("afterwards: %+v, %v", done, err)
	}
}
