//go:build integration

package historydb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
)

// tallied is a table with all that ever was stored in it kept beside, to be counted by hand.
type tallied struct {
	*archived
	t       *testing.T
	random  *rand.Rand
	pg      *store.Store
	counter [2]*historydb.Reader
	from    time.Time // of three days
	all     []talliedRow
	n       int
	moved   string    // the steps, in order
	other   *pgx.Conn // stores at once
	writer  *pgx.Conn // has a transaction open now and then
	open    pgx.Tx
	pending []talliedRow
	few     bool // paths have a name of their own
	both    joined
}

// joined counts as programs do: late decisions are looked for in the archives.
type joined struct {
	*historydb.Reader
	archives cold.Store
}

func (j joined) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	return j.archives.Stats(ctx, j.Reader, q)
}

// fewNames has one path of a service have a name, and four in all.
func (w *tallied) fewNames() {
	w.t.Helper()
	w.few = true
	w.Exec(w.t, `CREATE OR REPLACE FUNCTION decision_counts_most(OUT of_service int, OUT in_all int) LANGUAGE sql STABLE AS $$ SELECT 1, 4 $$`)
}

// execer is a connection or a transaction on one.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

type talliedRow struct {
	ts            time.Time
	path, service string
	verdict       reader.Verdict
	stored        []any // the arguments of storeSQL
}

const storeSQL = `INSERT INTO decision_logs (decision_id, ts, path, service, allowed, raw, source_topic, source_partition, source_offset, source_index)
			VALUES ($1, $2, nullif($3, ''), nullif(split_part($3, '/', 1), ''), $4::text::boolean, $5::jsonb, 't', 0, 1, 0) ON CONFLICT DO NOTHING`

func newTallied(t *testing.T, seed uint64) *tallied {
	w := &tallied{archived: old(t), t: t, random: rand.New(rand.NewPCG(seed, 4))}
	w.pg = open(t, w.URL, 20*time.Second)
	w.counter = [2]*historydb.Reader{historydb.NewReader(w.pg.DB).CountTo(), historydb.NewReader(w.pg.DB).CountTo()}
	w.from = w.day.AddDate(0, 0, -1)
	w.c.Table = historydb.NewArchives(w.pg.DB).Hurry(false, 0)
	w.other, w.writer = pgxConnect(t, w.URL), pgxConnect(t, w.URL)
	check(t, os.MkdirAll(w.dir, 0o700))
	table := historydb.NewReader(w.pg.DB)
	w.both = joined{table, cold.Store{Table: table, Days: cold.New(cold.Config{
		Where: w.dir, Table: "decision_logs", LineBytes: 1 << 20, Patience: time.Minute, Shelf: func() (archive.Shelf, error) { return archive.Dir(w.dir), nil },
	})}}
	return w
}

// rowsOf stores some decisions, late ones among them, as every one of them is of long ago.
func (w *tallied) rowsOf(on execer, n int) (rows []talliedRow) {
	w.t.Helper()
	for range n {
		w.n++
		r := talliedRow{ts: w.from.Add(time.Duration(w.random.IntN(72*3600)) * time.Second), path: []string{"", "a/b", "a/c", "z"}[w.random.IntN(4)]}
		if w.few {
			r.path = []string{"", "a/b", "a/c", "z", "b/a", "c/a", "(other)", "(other)/a"}[w.random.IntN(8)]
		}
		if w.random.IntN(8) == 0 {
			r.ts = r.ts.Truncate(24 * time.Hour).Add(24*time.Hour - time.Duration(w.random.IntN(2))*time.Microsecond)
		}
		r.service, _, _ = strings.Cut(r.path, "/")
		shape := w.random.IntN(5)
		r.verdict = []reader.Verdict{reader.Allowed, reader.Denied, reader.Undefined, reader.Error, reader.Other}[shape]
		r.stored = []any{fmt.Sprint("t", w.n), r.ts, r.path, []any{"true", "false", nil, nil, nil}[shape],
			[]string{`{"result":true}`, `{"result":false}`, `{}`, `{"error":{}}`, `{"result":3}`}[shape]}
		_, err := on.Exec(w.t.Context(), storeSQL, r.stored...)
		check(w.t, err)
		rows = append(rows, r)
	}
	return rows
}

// again delivers some decisions again, whether they are in the table or not.
func (w *tallied) again(n int) {
	w.t.Helper()
	for range min(n, len(w.all)) {
		_, err := w.other.Exec(w.t.Context(), storeSQL, w.all[w.random.IntN(len(w.all))].stored...)
		check(w.t, err)
	}
}

// exact compares what is answered by the day, by the hour and by half an hour with what is counted by hand.
func (w *tallied) exact(store reader.Store, halves bool) {
	w.t.Helper()
	steps := []time.Duration{24 * time.Hour, time.Hour}
	switch w.random.IntN(6) {
	case 0:
		steps = append(steps, 72*time.Hour)
	case 1:
		steps = append(steps, 7*time.Hour)
	}
	if halves && w.random.IntN(4) == 0 {
		steps = append(steps, 30*time.Minute)
	}
	for _, step := range steps {
		for _, since := range []time.Time{w.from, w.from.Add(5 * time.Hour)} {
			byPath := w.random.IntN(2) == 0
			if step > time.Hour || since.Equal(w.from) { // else it is as with the hours that are whole days
				q := reader.StatsQuery{Since: since, Until: w.from.Add(96 * time.Hour), Step: step, ByPath: byPath}
				want := map[string]int64{}
				for _, r := range w.all {
					if name := map[bool]string{true: r.path, false: r.service}[byPath]; !r.ts.Before(q.Since) {
						want[fmt.Sprint(q.Since.Add(r.ts.Sub(q.Since).Truncate(step)).UTC(), name, r.verdict)]++
					}
				}
				ctx, parts := reader.WithParts(w.t.Context())
				stats, err := store.Stats(ctx, q)
				check(w.t, err)
				if _, looks := store.(joined); looks && step >= time.Hour { // below, a counted day in the default partition may have left
					check(w.t, parts.Err())
				}
				if w.few {
					stats, want = w.brought(q, stats, want)
				}
				for _, s := range stats {
					for v, n := range s.Counts {
						key := fmt.Sprint(s.From, s.Name, v)
						if want[key] != n {
							w.t.Fatalf("step %s from %s: %s: %d, want %d, after %s", step, since, key, n, want[key], w.moved)
						}
						delete(want, key)
					}
				}
				if len(want) > 0 {
					w.t.Fatalf("step %s from %s: not counted: %v, after %s", step, since, want, w.moved)
				}
			}
		}
	}
}

// brought checks that no name has more than it should, and brings the names of each step together.
func (w *tallied) brought(q reader.StatsQuery, stats []reader.Stats, byName map[string]int64) (sums []reader.Stats, want map[string]int64) {
	w.t.Helper()
	if !slices.IsSortedFunc(stats, reader.Stats.Compare) {
		w.t.Errorf("not in order: %v", stats)
	}
	want = map[string]int64{}
	for _, r := range w.all {
		if !r.ts.Before(q.Since) {
			want[fmt.Sprint(q.Since.Add(r.ts.Sub(q.Since).Truncate(q.Step)).UTC(), "", r.verdict)]++
		}
	}
	for _, s := range stats {
		for v, n := range s.Counts {
			if most := byName[fmt.Sprint(s.From, s.Name, v)]; n > most && s.Name != reader.OtherPaths {
				w.t.Errorf("%s has %d %s, and there are %d, after %s", s.Name, n, v, most, w.moved)
			}
		}
		if len(sums) == 0 || !sums[len(sums)-1].From.Equal(s.From) {
			sums = append(sums, reader.Stats{From: s.From, Counts: map[reader.Verdict]int64{}})
		}
		for v, n := range s.Counts {
			sums[len(sums)-1].Counts[v] += n
		}
	}
	return sums, want
}

// TestStats_ExactAtEveryMoment stores, counts, archives and restores in any order. The answers by the day, from the counts of days, and by
// the hour, from those of hours, always equal a count by hand.
func TestStats_ExactAtEveryMoment(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{0, 1, 2, 5, 6, 7} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newTallied(t, seed)
			if seed > 2 {
				w.fewNames()
			}
			done := map[string]int{}
			for range 40 {
				what := w.step()
				if done[strings.Fields(what)[0]]++; w.moved == "" {
					w.moved = what
				} else {
					w.moved += ", " + what
				}
				w.exact(w.both, w.inTheTable())
			}
			for _, must := range []string{"store", "open", "count", "archive", "again"} {
				if done[must] == 0 {
					t.Errorf("never: %s; %v", must, done)
				}
			}
			w.end(true)
			w.all = append(w.all, w.rowsOf(w.other, 40)...)
			for _, to := range []bool{false, true} { // counted while it is taken out, and before
				w.c.Table = historydb.NewArchives(w.pg.DB).Hurry(to, 0)
				w.archive(false)
				w.exact(w.both, false)
				w.again(9)
				w.exact(w.both, false)
				w.c.Table = historydb.NewArchives(w.pg.DB).Hurry(true, 0)
				w.restore()
				w.exact(w.both, false)
			}
			w.count(0)
			w.exact(w.both, w.inTheTable())
			var hours, days, over int64
			w.Query(t, `SELECT (SELECT count(*) FROM decision_counts), (SELECT count(*) FROM decision_counts_days),
				(SELECT count(*) FROM (SELECT FROM decision_counts_days GROUP BY day, path, service HAVING count(*) > 20) AS a)`, &hours, &days, &over)
			if hours == 0 || days == 0 || over > 0 {
				t.Errorf("%d lines of hours, %d of days, %d that nobody folded", hours, days, over)
			}
		})
	}
}

// step does one thing.
func (w *tallied) step() string {
	day := archive.Day{Time: w.from.AddDate(0, 0, w.random.IntN(3))}
	switch n := w.random.IntN(23); {
	case n >= 20:
		w.again(1 + w.random.IntN(12))
		return "again"
	case n < 7:
		w.all = append(w.all, w.rowsOf(w.other, 1+w.random.IntN(12))...)
		return "store"
	case n < 9 && w.open == nil:
		tx, err := w.writer.Begin(w.t.Context())
		check(w.t, err)
		if w.open = tx; n < 8 {
			w.pending = w.rowsOf(tx, 3)
		} else {
			_, err = tx.Exec(w.t.Context(), `SELECT`)
			check(w.t, err)
		}
		return "open"
	case n < 12:
		if w.open == nil {
			return "nothing"
		}
		w.end(w.random.IntN(3) > 0)
		return "end"
	case n < 15:
		w.count(w.random.IntN(2))
		return "count"
	case n < 16:
		var both sync.WaitGroup
		for i := range w.counter {
			both.Go(func() {
				if _, err := w.counter[i].Count(w.t.Context()); err != nil {
					w.t.Error(err)
				}
			})
		}
		both.Wait()
		return "both count"
	case len(w.pending) > 0:
		return "nothing" // the open writer holds the table
	case n < 18:
		w.c.Table = historydb.NewArchives(w.pg.DB).Hurry(w.random.IntN(2) == 0, 0)
		_, err := w.c.Archive(w.t.Context(), day, w.random.IntN(4) == 0)
		check(w.t, err)
		return fmt.Sprintf("archive %s", day)
	}
	w.c.Table = historydb.NewArchives(w.pg.DB).Hurry(w.random.IntN(2) == 0, 0)
	_, err := w.c.Restore(w.t.Context(), day)
	uncounted := (*archive.UncountedError)(nil)
	switch {
	case err == nil:
		return fmt.Sprintf("restore %s", day)
	case errors.Is(err, archive.ErrNone), errors.As(err, &uncounted):
		return "no restore"
	}
	w.t.Fatal(err)
	return ""
}

func (w *tallied) count(who int) {
	w.t.Helper()
	_, err := w.counter[who].Count(w.t.Context())
	check(w.t, err)
}

func (w *tallied) end(commit bool) {
	w.t.Helper()
	if w.open == nil {
		return
	}
	if commit {
		check(w.t, w.open.Commit(w.t.Context()))
		w.all = append(w.all, w.pending...)
	} else {
		check(w.t, w.open.Rollback(w.t.Context()))
	}
	w.open, w.pending = nil, nil
}

// inTheTable says whether nothing is archived and away, so that it can be counted row by row.
func (w *tallied) inTheTable() bool {
	w.t.Helper()
	var n int
	w.Query(w.t, `SELECT count(*) FROM decision_logs`, &n)
	return n == len(w.all)
}

// TestStats_WithoutRightsOnTheCounts: they come from what there is to read, down to the rows, and nobody counts but by the function
// that is made for it.
func TestStats_WithoutRightsOnTheCounts(t *testing.T) {
	t.Parallel()
	w := newTallied(t, 9)
	w.settle()
	w.all = append(w.all, w.rowsOf(w.other, 40)...)
	w.count(0)
	w.all = append(w.all, w.rowsOf(w.other, 10)...)
	role := w.Name + "_looks"
	w.Exec(t, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA public TO %[1]s; GRANT SELECT ON decision_logs TO %[1]s`, role))
	t.Cleanup(func() { w.Exec(t, fmt.Sprintf(`DROP OWNED BY %[1]s CASCADE; DROP ROLE %[1]s`, role)) })
	pg := open(t, w.URL+"&role="+role, 20*time.Second)
	for _, rights := range []string{
		``, `GRANT SELECT ON decision_counts_mark TO %[1]s`, `GRANT SELECT ON decision_counts TO %[1]s`,
		`GRANT SELECT ON decision_counts_days TO %[1]s; REVOKE ALL ON decision_counts FROM %[1]s`, `GRANT SELECT, INSERT, DELETE ON decision_counts TO %[1]s`,
	} {
		if rights != "" {
			w.Exec(t, fmt.Sprintf(rights, role))
		}
		if n, err := historydb.NewReader(pg.DB).CountTo().Count(t.Context()); n != 0 || err != nil {
			t.Errorf("%s: %d counted, %v", rights, n, err)
		}
		w.exact(historydb.NewReader(pg.DB), true)
	}
	w.Exec(t, fmt.Sprintf(`GRANT EXECUTE ON FUNCTION decision_counts_count(interval, interval) TO %s; REVOKE INSERT, DELETE ON decision_counts FROM %[1]s`, role))
	if n, err := historydb.NewReader(pg.DB).CountTo().Count(t.Context()); n != 10 || err != nil {
		t.Errorf("with the function: %d counted, %v", n, err)
	}
	w.exact(historydb.NewReader(pg.DB), true)
}

// TestStats_CameAgain: a decision that comes again after its day was archived counts once: at once, when it was counted, when it was
// archived again, and when the day was restored. Without the archives an answer says that it may count twice.
func TestStats_CameAgain(t *testing.T) {
	t.Parallel()
	w := newTallied(t, 14)
	w.settle()
	w.all = append(w.all, w.rowsOf(w.other, 60)...)
	w.count(0)
	w.archive(false)
	exact := func(when string) {
		t.Helper()
		w.moved = when
		w.exact(w.both, false)
	}
	deliver := func(when string) {
		t.Helper()
		var late int64
		for _, r := range w.all {
			if archive.DayOf(r.ts) == w.day {
				_, err := w.other.Exec(t.Context(), storeSQL, r.stored...)
				check(t, err)
				late++
			}
		}
		w.all = append(w.all, w.rowsOf(w.other, 20)...)
		exact(when)
		w.count(0)
		exact(when + ", counted")
		lines, lates, err := w.both.StatsLate(t.Context(), reader.StatsQuery{Since: w.from, Until: w.from.Add(96 * time.Hour), Step: 24 * time.Hour})
		if err != nil || len(lines) == 0 || lates.All < late || int64(len(lates.Some)) != lates.All {
			t.Errorf("%s: %d late decisions, at least %d expected, %v", when, lates.All, late, err)
		}
		_, err = w.both.Reader.Stats(t.Context(), reader.StatsQuery{Since: w.from, Until: w.from.Add(96 * time.Hour), Step: 24 * time.Hour})
		if partial := reader.AsPartial(err); partial == nil || !strings.Contains(err.Error(), "may be counted twice") {
			t.Errorf("%s: without the archives: %v", when, err)
		}
	}
	deliver("delivered again")
	w.c.Table = historydb.NewArchives(w.pg.DB).Hurry(true, 0)
	w.c.Told = func(s archive.Step) { exact("at the step " + string(s) + " of the second archive") }
	w.archive(false)
	w.c.Told = nil
	exact("archived again")
	if _, late, err := w.both.StatsLate(t.Context(), reader.StatsQuery{Since: w.from, Until: w.from.Add(96 * time.Hour), Step: time.Hour}); err != nil || late.All != 0 {
		t.Errorf("%d late decisions of days that were archived again, %v", late.All, err)
	}
	deliver("delivered a third time")
	w.restore()
	exact("restored")
	w.again(100)
	exact("delivered to the restored day")
	w.count(0)
	exact("counted")
	w.archive(false)
	exact("archived a third time")
}
