//go:build integration

package historydb_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

// Steps below an hour are counted row by row, and no row of an archived day is left. The answer says so. By the hour it is whole.
func TestStats_ArchivedDayInSmallSteps(t *testing.T) {
	t.Parallel()
	w := newTallied(t, 31)
	w.settle()
	w.all = append(w.all, w.rowsOf(w.other, 60)...)
	w.count(0)
	day := w.day.Time
	small := reader.StatsQuery{Since: day.Add(time.Hour), Until: day.Add(23 * time.Hour), Step: 30 * time.Minute}
	total := func(store reader.Store, q reader.StatsQuery) (n int64, err error) {
		lines, err := store.Stats(t.Context(), q)
		for _, l := range lines {
			for _, c := range l.Counts {
				n += c
			}
		}
		return n, err
	}
	before, err := total(w.both, small)
	if check(t, err); before == 0 {
		t.Fatal("the day has no decisions")
	}
	w.archive(false)
	for name, store := range map[string]reader.Store{"table": w.both.Reader, "with archives": w.both} {
		n, err := total(store, small)
		if partial := reader.AsPartial(err); partial == nil || n != 0 || !strings.Contains(err.Error(), "--step 1h") {
			t.Errorf("%s: %d decisions, %v", name, n, err)
		}
		hourly := small
		hourly.Step = time.Hour
		if n, err := total(store, hourly); err != nil || n != before {
			t.Errorf("%s: %d decisions by the hour, want %d, %v", name, n, before, err)
		}
		begin := func(reader.StatsQuery) struct{} { return struct{}{} }
		if by, err := reader.CountStats(t.Context(), store, small, false, begin); err != nil || by.Query.Step != time.Hour {
			t.Errorf("%s: without a step: by %v, %v", name, by.Query.Step, err)
		}
		now := time.Now().UTC().Truncate(time.Hour)
		if _, err := total(store, reader.StatsQuery{Since: now.Add(-time.Hour), Until: now.Add(time.Hour), Step: 5 * time.Minute}); err != nil {
			t.Errorf("%s: of today: %v", name, err)
		}
	}
	role := w.Name + "_rows"
	w.Exec(t, `CREATE ROLE `+role+`; GRANT USAGE ON SCHEMA public TO `+role+`; GRANT SELECT ON decision_logs TO `+role)
	t.Cleanup(func() { w.Exec(t, `DROP OWNED BY `+role+` CASCADE; DROP ROLE `+role) })
	pg := open(t, w.URL+"&role="+role, 20*time.Second)
	hourly := small
	hourly.Step = time.Hour
	if _, err := total(historydb.NewReader(pg.DB), hourly); reader.AsPartial(err) == nil || !strings.Contains(err.Error(), "may not read the counts") {
		t.Errorf("a role that may not read the counts: %v", err)
	}
}

// If it cannot be found out whether days left, the answer says so. It names no other cause, and a question that was given up fails.
func TestStats_NotKnownWhetherDaysLeft(t *testing.T) {
	t.Parallel()
	a := newArchived(t, pgtest.New(t))
	r := historydb.NewReader(open(t, a.URL, time.Minute).DB)
	day := a.day.Time
	small := reader.StatsQuery{Since: day, Until: day.Add(time.Hour), Step: 5 * time.Minute}
	conn := pgxConnect(t, a.URL)
	tx, err := conn.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE decision_counts_days IN ACCESS EXCLUSIVE MODE`)
	check(t, err)
	_, err = r.Stats(t.Context(), small)
	if reader.AsPartial(err) == nil || !strings.Contains(err.Error(), "not known whether") || strings.Contains(err.Error(), "--step") {
		t.Errorf("behind a lock: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked sync.WaitGroup
	asked.Go(func() { _, err = r.Stats(ctx, small) })
	for waits := false; !waits && t.Context().Err() == nil; {
		a.Query(t, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'decision_counts_days'::regclass)`, &waits)
	}
	cancel()
	if asked.Wait(); !errors.Is(err, context.Canceled) || reader.AsPartial(err) != nil {
		t.Errorf("given up: %v", err)
	}
	check(t, tx.Rollback(t.Context()))
	if _, err := r.Stats(t.Context(), small); err != nil {
		t.Errorf("without the lock: %v", err)
	}
}

// Where nothing ever left, an answer is whole also for times before the first decision, and for a role that may not read the counts.
func TestStats_NothingEverLeft(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	now := time.Now().UTC().Truncate(24 * time.Hour)
	for name, url := range map[string]string{"owner": d.URL, "without the counts": d.Role(t, "SELECT")} {
		r := historydb.NewReader(open(t, url, time.Minute).DB)
		for _, step := range []time.Duration{5 * time.Minute, time.Hour, 24 * time.Hour} {
			if _, err := r.Stats(t.Context(), reader.StatsQuery{Since: now.AddDate(0, 0, -90), Step: step}); err != nil {
				t.Errorf("%s, in steps of %s: %v", name, step, err)
			}
		}
	}
}
