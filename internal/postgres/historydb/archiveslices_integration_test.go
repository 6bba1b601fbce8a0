//go:build integration

package historydb_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
)

// TestArchive_Slices: a day that is read in slices is archived whole and in order, with an index on times and without.
func TestArchive_Slices(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]string{
		"with an index":    `SELECT 1`,
		"without an index": `DROP INDEX decision_logs_times_brin`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.settle()
			a.rows(1, 1500)
			a.Exec(t, prepare)
			a.Exec(t, `UPDATE decision_logs SET ts = '2026-03-04 23:59:59.999999+00' WHERE req_id % 100 = 0`)
			a.Exec(t, `UPDATE decision_logs SET ts = '2026-03-04 00:00:00+00' WHERE req_id % 100 = 1`)
			before := a.text()
			a.c.Table.(*historydb.Archives).Sliced(8192)
			if done := a.archive(false); !done.Dropped || done.Late || done.Rows != 1500 {
				t.Fatalf("%+v", done)
			}
			all, err := archive.Whole(t.Context(), a.c.Shelf, "decision_logs", &a.day)
			if err != nil || len(all) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			var last string
			if err := archive.Check(t.Context(), a.c.Shelf, all[0], func(line []byte) error {
				_, rest, _ := bytes.Cut(line, []byte(`"ts":"`))
				at, _, _ := bytes.Cut(rest, []byte(`+00:00"`))
				before, now := last, fmt.Sprintf("%-26s", at)
				if last = now; now < before {
					return errors.New("a row comes behind a later one")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			if r := a.restore(); r.Stored != 1500 || a.text() != before {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestArchive_OneSessionDoes: a day is read as two sessions read it if the server has no room for the second.
func TestArchive_OneSessionDoes(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 1500)
	read := func(alone bool) (lines []string, facts archive.Facts) {
		t.Helper()
		day, err := a.c.Table.(*historydb.Archives).Sliced(8192).Open(t.Context(), a.day)
		check(t, err)
		defer day.Close()
		if alone {
			historydb.Alone(day)
		}
		_, err = day.Where(t.Context())
		check(t, err)
		shape, err := day.Shape(t.Context())
		check(t, err)
		var inside atomic.Int32
		crowd := make(chan struct{}, 1)
		facts, err = day.Read(t.Context(), shape, func(line []byte) error {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				select {
				case crowd <- struct{}{}:
				default:
				}
				return errors.New("two sessions pass rows at once")
			}
			if lines = append(lines, string(line)); len(lines) == 1 {
				select { // the other session has its rows long before
				case <-crowd:
				case <-time.After(time.Second):
				}
			}
			return nil
		})
		check(t, err)
		if historydb.Together(day) == alone {
			t.Fatalf("alone: %v, and not so", alone)
		}
		return lines, facts
	}
	one, factsOfOne := read(true)
	two, factsOfTwo := read(false)
	if len(one) != 1500 || !slices.Equal(one, two) || factsOfOne != factsOfTwo {
		t.Errorf("%d and %d lines, %+v and %+v", len(one), len(two), factsOfOne, factsOfTwo)
	}
}

// TestArchive_RefusedWhileTwoRead: a row that the caller refuses ends both sessions.
func TestArchive_RefusedWhileTwoRead(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 1500)
	for _, at := range []int{1, 700, 1500} {
		day, err := a.c.Table.(*historydb.Archives).Sliced(8192).Open(t.Context(), a.day)
		check(t, err)
		_, err = day.Where(t.Context())
		check(t, err)
		shape, err := day.Shape(t.Context())
		check(t, err)
		full, n := errors.New("the shelf is full"), 0
		_, err = day.Read(t.Context(), shape, func([]byte) error {
			if n++; n == at {
				return full
			}
			return nil
		})
		if !errors.Is(err, full) || n != at {
			t.Errorf("refused at row %d of %d: %v", n, at, err)
		}
		day.Close()
	}
}

// TestArchive_NobodyWaitsForEver: somebody who wants the table for himself comes between the two sessions that read. He waits for the
// first one. The second must not wait behind him, as the first one's rows wait for its own.
func TestArchive_NobodyWaitsForEver(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 1500)
	other := pgxConnect(t, a.URL)
	got := make(chan error, 1)
	table := a.c.Table.(*historydb.Archives).Sliced(8192)
	table.BeforeJoin(func() {
		go func() {
			_, err := other.Exec(t.Context(), `BEGIN; LOCK TABLE decision_logs_p20260304 IN ACCESS EXCLUSIVE MODE; COMMIT`)
			got <- err
		}()
		for waits := false; !waits && len(got) == 0; {
			a.Query(t, `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'decision_logs_p20260304'::regclass AND NOT granted)`, &waits)
		}
	})
	if done := a.archive(true); done.Rows != 1500 {
		t.Errorf("%+v", done)
	}
	check(t, <-got)
}

// TestArchive_RowsWithoutAHash: rows of an earlier release are hashed beside the others, and alone.
func TestArchive_RowsWithoutAHash(t *testing.T) {
	t.Parallel()
	for _, where := range []string{`true`, `req_id % 2 = 0`, `false`} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.settle()
			a.rows(1, 300)
			a.Exec(t, `UPDATE decision_logs SET raw_sha256 = CASE WHEN `+where+` THEN NULL ELSE sha256('x') END`)
			before := a.text()
			if done := a.archive(true); done.Rows != 300 {
				t.Fatalf("%+v", done)
			}
			if done := a.archive(false); !done.Dropped || !done.Reused || done.Late {
				t.Fatalf("%+v", done)
			}
			if r := a.restore(); r.Stored != 300 || a.text() != before {
				t.Fatalf("%+v", r)
			}
		})
	}
}

// TestArchive_ManyColumns: a row has more columns than a function of Postgres takes arguments.
func TestArchive_ManyColumns(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.Exec(t, `DO $$ BEGIN FOR i IN 1 .. 100 LOOP EXECUTE format('ALTER TABLE decision_logs ADD COLUMN own_%s text', i); END LOOP; END $$`)
	a.settle()
	a.rows(1, 20)
	a.Exec(t, `UPDATE decision_logs SET own_7 = 'seven', own_100 = 'the last' WHERE req_id % 2 = 0`)
	before := a.text()
	if done := a.archive(false); !done.Dropped || done.Late || done.Rows != 20 {
		t.Fatalf("%+v", done)
	}
	if r := a.restore(); r.Stored != 20 || a.text() != before {
		t.Fatalf("%+v", r)
	}
}
