//go:build integration

package historydb_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

// TestMayBeArchived_ByWhatIsCounted: a new table never had an archive. A day that was counted and has no partition may have one, until
// it is restored.
func TestMayBeArchived_ByWhatIsCounted(t *testing.T) {
	t.Parallel()
	fresh := newArchived(t, pgtest.New(t))
	fresh.rows(1, 3) // into decision_logs_before
	count(t, fresh.URL)
	maybe(t, "a table without archives", fresh.URL, false)
	maybe(t, "without the counts", fresh.Role(t, "SELECT"), true) // it may not read the ledger either

	a := old(t)
	maybe(t, "a removed table of early days", a.URL, true)
	a.Exec(t, `CREATE TABLE decision_logs_early PARTITION OF decision_logs FOR VALUES FROM (MINVALUE) TO ('2026-03-04 00:00+00')`)
	a.settle()
	a.rows(1, 20)
	count(t, a.URL)
	maybe(t, "a day in its partition", a.URL, false)
	a.archive(true)
	maybe(t, "a day that was kept", a.URL, false)
	a.c.Told = func(s archive.Step) {
		if s == archive.StepDetached {
			maybe(t, "a day that is being archived", a.URL, true)
		}
	}
	a.archive(false)
	maybe(t, "an archived day", a.URL, true)
	a.restore()
	maybe(t, "a restored day", a.URL, false)
	a.Exec(t, `DROP TABLE decision_logs_p20260304`)
	maybe(t, "a removed day", a.URL, true)
	a.Exec(t, `TRUNCATE decision_counts, decision_counts_days`)
	maybe(t, "a day that no count knows", a.URL, true)
}

// TestMayBeArchived_Letters: the audit of the ledger says that a dead letter was archived, also when the letter is removed.
func TestMayBeArchived_Letters(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	maybe(t, "nothing", d.DB.URL, false)
	l := pgtest.Letter(1, `{"decision_id":"a"}`)
	d.Entered(l)
	d.Closed(l)
	maybe(t, "a closed letter", d.DB.URL, false)
	d.Shelved()
	maybe(t, "an archived letter", d.DB.URL, true)
	if d.Removed() != 1 {
		t.Fatal("it stays")
	}
	maybe(t, "a removed letter", d.DB.URL, true)
}

// TestMayBeArchived_RightsThatChange has one reader meet a ledger that it may not read any more, and then may read again.
func TestMayBeArchived_RightsThatChange(t *testing.T) {
	t.Parallel()
	d := pgtest.NewLetters(t)
	r := historydb.NewReader(open(t, d.DB.URL, 0).DB)
	var all sync.WaitGroup
	for range 4 { // at once, before anything is known of the rights
		all.Go(func() {
			if got, err := inTime(t, r.MayBeArchived); err != nil || got {
				t.Errorf("the first questions: %t, %v", got, err)
			}
		})
	}
	all.Wait()
	for i, c := range []struct {
		sql  string
		want bool
	}{
		{``, false},
		{``, false},
		{`ALTER TABLE dead_letter_surplus RENAME TO elsewhere`, true},
		{``, true},
		{`ALTER TABLE elsewhere RENAME TO dead_letter_surplus`, false},
		{`ALTER TABLE decision_counts_days RENAME TO elsewhere`, false},
		{`ALTER TABLE elsewhere RENAME TO decision_counts_days`, false},
	} {
		if c.sql != "" {
			d.DB.Exec(t, c.sql)
		}
		if got, err := inTime(t, r.MayBeArchived); err != nil || got != c.want {
			t.Errorf("question %d: %t, %v", i, got, err)
		}
	}
}

// TestGone_DaysOfARange: a search is told of days that left the table. One that is being archived is read, and not gone.
func TestGone_DaysOfARange(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.Exec(t, `CREATE TABLE decision_logs_early PARTITION OF decision_logs FOR VALUES FROM (MINVALUE) TO ('2026-03-04 00:00+00')`)
	a.settle()
	a.rows(1, 20)
	count(t, a.URL)
	r := historydb.NewReader(open(t, a.URL, 0).DB)
	is := func(what string, since, until time.Time, want bool) {
		t.Helper()
		gone := func(ctx context.Context) (bool, error) { return r.Gone(ctx, since, until) }
		if got, err := inTime(t, gone); err != nil || got != want {
			t.Errorf("%s: %t, %v", what, got, err)
		}
	}
	is("a day in the table", time.Time{}, time.Time{}, false)
	a.Exec(t, `INSERT INTO decision_counts_days SELECT (jsonb_populate_record(c, '{"day":"2099-01-01 00:00+00"}')).* FROM decision_counts_days c LIMIT 1`)
	is("a day of a clock that is ahead", time.Time{}, time.Time{}, false)
	a.c.Told = func(s archive.Step) {
		if s == archive.StepDetached {
			is("a day that is being archived", time.Time{}, time.Time{}, false)
		}
	}
	a.archive(false)
	is("an archived day", time.Time{}, time.Time{}, true)
	is("its own range", a.day.Time, a.day.Next().Time, true)
	is("the days before", time.Time{}, a.day.Time, false)
	is("the days behind", a.day.Next().Time, time.Time{}, false)
	a.restore()
	is("a restored day", time.Time{}, time.Time{}, false)
}

func count(t *testing.T, url string) {
	t.Helper()
	if _, err := historydb.NewReader(open(t, url, 0).DB).CountTo().Count(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func maybe(t *testing.T, what, url string, want bool) {
	t.Helper()
	r := historydb.NewReader(open(t, url, 0).DB)
	if got, err := inTime(t, r.MayBeArchived); err != nil || got != want {
		t.Errorf("%s: %t, %v", what, got, err)
	}
}

// inTime asks until there is an answer. One has half a second, in which a busy machine may not come to it.
func inTime(t *testing.T, ask func(context.Context) (bool, error)) (is bool, err error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		if is, err = ask(t.Context()); err == nil || time.Now().After(end) {
			return is, err
		}
	}
}

// TestDays_OldRowsAmongOthers: rows that are old enough, in a partition that is not over, are told.
func TestDays_OldRowsAmongOthers(t *testing.T) {
	t.Parallel()
	a := newArchived(t, pgtest.New(t))
	cut := archive.Day{Time: a.day.AddDate(0, 1, 0)}
	if held, err := a.c.Table.Days(t.Context(), cut); err != nil || len(held) != 0 {
		t.Errorf("without rows: %+v, %v", held, err)
	}
	a.rows(1, 3) // into decision_logs_before
	held, err := a.c.Table.Days(t.Context(), cut)
	if err != nil || len(held) != 1 || held[0].Location != archive.Shared || !held[0].Day.Next().Equal(cut.Time) {
		t.Errorf("%+v, %v", held, err)
	}
	if held, err := a.c.Table.Days(t.Context(), a.day); err != nil || len(held) != 0 {
		t.Errorf("rows that are too young: %+v, %v", held, err)
	}
	if held, err := a.c.Table.Days(t.Context(), archive.DayOf(time.Now().AddDate(1, 0, 0))); err != nil || len(held) < 1 {
		t.Errorf("after it is over: %+v, %v", held, err)
	}
}
