//go:build integration

package historydb_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

// TestArchive_ViewOfADay: a day that a view uses is archived and not dropped. Its decisions are still found, and the error says what
// to do.
func TestArchive_ViewOfADay(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 50)
	a.Exec(t, `CREATE VIEW mine AS SELECT * FROM decision_logs_p20260304`)
	done, err := a.c.Archive(t.Context(), a.day, false)
	if errclass.Classify(err).Code != "2BP01" || done.Dropped || !strings.Contains(db.Hint(err), "view") {
		t.Errorf("%+v, %v, hint %q", done, err, db.Hint(err))
	}
	found, err := historydb.NewReader(pgtest.Open(t, a.URL, 0).DB).Search(t.Context(), reader.Filter{}, reader.Page{Limit: 100})
	if err != nil || len(found.Decisions) != 50 {
		t.Errorf("%d decisions are found, %v", len(found.Decisions), err)
	}
	a.Exec(t, `DROP VIEW mine`)
	if done, err := a.c.Archive(t.Context(), a.day, false); err != nil || !done.Dropped {
		t.Errorf("without the view: %+v, %v", done, err)
	}
}

// TestArchive_ColumnBetweenTwoTries: the first try to drop the day waits for a lock in vain, and a column comes before the next one.
// The day is not dropped then, and is not said to be.
func TestArchive_ColumnBetweenTwoTries(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 50)
	counting, err := pgx.Connect(t.Context(), a.URL)
	check(t, err)
	defer func() { check(t, counting.Close(context.Background())) }()
	changed := make(chan error, 1)
	a.c.Told = func(s archive.Step) {
		if s != archive.StepDetached {
			return
		}
		_, err := counting.Exec(t.Context(), `SELECT pg_advisory_lock('decision_counts_mark'::regclass::int, 1)`)
		check(t, err)
		go func() { // once the first try has the day and waits
			_, err := counting.Exec(t.Context(), `DO $$ BEGIN
				WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) LOOP
					PERFORM pg_sleep(0.01);
				END LOOP;
			END $$; ALTER TABLE decision_logs_leaving_20260304 ADD COLUMN extra text DEFAULT 'x'; SELECT pg_advisory_unlock('decision_counts_mark'::regclass::int, 1)`)
			changed <- err
		}()
	}
	done, err := a.c.Archive(t.Context(), a.day, false)
	check(t, err)
	check(t, <-changed)
	var there bool
	if a.Query(t, `SELECT to_regclass('decision_logs_leaving_20260304') IS NOT NULL`, &there); there || !done.Dropped || !done.Late {
		t.Errorf("%+v; the day is still there: %v", done, there)
	}
}
