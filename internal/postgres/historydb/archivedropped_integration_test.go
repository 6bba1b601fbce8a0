//go:build integration

package historydb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive"
)

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
