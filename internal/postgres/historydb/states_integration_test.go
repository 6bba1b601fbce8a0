//go:build integration

package historydb_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/record/subject"
	"docket/internal/record/verdict"
)

var byHost = reader.Question{Subject: subject.Spec{Kind: subject.RequestedByHost}}

// stated is a table, with all that ever was stored in it kept beside and folded by hand.
type stated struct {
	*archived
	t       *testing.T
	random  *rand.Rand
	pg      *store.Store
	all     []state.Decision
	n       int
	other   *pgx.Conn // stores at once
	writer  *pgx.Conn // has a transaction open now and then
	open    pgx.Tx
	pending []state.Decision
	from    time.Time // of three days
}

func newStated(t *testing.T, seed uint64) *stated {
	w := &stated{archived: old(t), t: t, random: rand.New(rand.NewPCG(seed, 17))}
	w.pg = open(t, w.URL, 20*time.Second)
	w.from = w.day.AddDate(0, 0, -1)
	w.c.Table = historydb.NewArchives(w.pg.DB).Hurry(true, 0)
	w.other, w.writer = pgxConnect(t, w.URL), pgxConnect(t, w.URL)
	return w
}

func (w *stated) states(rows int) *historydb.States {
	return historydb.NewStates(w.pg.DB, historydb.StatesConfig{Question: byHost, Most: 1 << 20, Slack: time.Microsecond, Rows: rows, Portions: 5})
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// store stores some decisions of few subjects; many are older than others before them.
func (w *stated) store(on querier, n int) []state.Decision {
	w.t.Helper()
	rows := w.make(n)
	for i := range rows {
		w.insert(on, &rows[i])
	}
	return rows
}

// make makes what store stores.
func (w *stated) make(n int) (rows []state.Decision) {
	for range n {
		w.n++
		shape := w.random.IntN(3)
		d := state.Decision{
			Key:     state.Key{Subject: []string{"10.0.0.1", "10.0.0.2"}[w.random.IntN(2)], Path: []string{"a/b", "a/c"}[w.random.IntN(2)]},
			Version: state.Version{Time: w.from.Add(time.Duration(w.random.IntN(72*3600)) * time.Second).UTC(), ID: fmt.Sprint("s", w.n)}, Revision: []string{"main@r1", "main@r2"}[w.random.IntN(2)],
			Verdict: []verdict.Verdict{verdict.Allowed, verdict.Denied, verdict.Undefined}[shape],
		}
		rows = append(rows, d)
	}
	return rows
}

// insert stores one, and says when that was and whether its day had left.
func (w *stated) insert(on querier, d *state.Decision) {
	w.t.Helper()
	var allowed, raw any
	switch d.Verdict {
	case verdict.Allowed:
		allowed, raw = "true", `{"result":true}`
	case verdict.Denied:
		allowed, raw = "false", `{"result":false}`
	default:
		raw = `{}`
	}
	err := on.QueryRow(w.t.Context(), `INSERT INTO decision_logs (decision_id, ts, path, requested_by, allowed, bundles, raw, source_topic, source_partition, source_offset, source_index)
		VALUES ($1, $2, $3, $4, $5::text::boolean, jsonb_build_object('main', jsonb_build_object('revision', $6::text)), $7::jsonb, 't', 0, 1, 0)
		RETURNING stored_at, EXISTS (SELECT FROM decision_counts_left l WHERE l.day = date_trunc('day', ts, 'UTC'))`,
		d.ID, d.Time, d.Path, d.Subject+":4711", allowed, strings.TrimPrefix(d.Revision, "main@"), raw).Scan(&d.StoredAt, &d.Left)
	check(w.t, err)
	d.StoredAt = d.StoredAt.UTC()
}

// again stores decisions of a day again that left the table, and others of it for the first time.
func (w *stated) again(day archive.Day) (stored int) {
	w.t.Helper()
	for _, d := range slices.Clone(w.all) {
		if archive.DayOf(d.Time) == day && w.random.IntN(2) == 0 {
			stored++
			if w.insert(w.other, &d); !d.Left {
				w.t.Fatalf("%s is in the table", day)
			}
		}
	}
	if stored == 0 { // it had none, and did not leave
		return 0
	}
	for _, d := range w.make(1 + w.random.IntN(6)) {
		d.Time = day.Add(time.Duration(w.random.IntN(24*3600)) * time.Second)
		w.insert(w.other, &d)
		w.all = append(w.all, d)
	}
	return stored
}

// follow follows once. Sessions that were killed are no longer in the pool after it has seen their end, so it tries again.
func (w *stated) follow(s *historydb.States) state.Round {
	w.t.Helper()
	for {
		r, err := s.Follow(w.t.Context())
		if err != nil && errclass.Classify(err).Code == pgerrcode.AdminShutdown {
			continue
		}
		check(w.t, err)
		return r
	}
}

// settled follows until all that was stored is in the states.
func (w *stated) settled(s *historydb.States) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		w.follow(s)
		var behind bool
		w.Query(w.t, `SELECT EXISTS (SELECT FROM decision_logs d, decision_states_mark m WHERE d.stored_at >= m.stored_before)`, &behind)
		if !behind {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("the states are behind for a minute")
		}
	}
}

// exact compares the tables with a fold of all that was stored and committed.
func (w *stated) exact(after string) {
	w.t.Helper()
	ordered := slices.SortedFunc(slices.Values(w.all), func(a, b state.Decision) int {
		return cmp.Or(a.StoredAt.Compare(b.StoredAt), a.Version.Compare(b.Version))
	})
	f := state.New(nil, 1<<20)
	for i := range ordered {
		f.Add(&ordered[i])
	}
	want, _ := f.Changed()
	rows, err := w.other.Query(w.t.Context(), `SELECT subject, path, verdict, revision, since, since_id, last_seen, decisions, version_ts, version_id, before_verdict, before_ts, before_id, late FROM decision_states ORDER BY subject, path`)
	check(w.t, err)
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s state.State, err error) {
		var v string
		var was, id *string
		var at *time.Time
		err = row.Scan(&s.Subject, &s.Path, &v, &s.Revision, &s.Since.Time, &s.Since.ID, &s.LastSeen, &s.Decisions, &s.Version.Time, &s.Version.ID, &was, &at, &id, &s.Late)
		s.Verdict, s.Since.Time, s.LastSeen, s.Version.Time = verdict.Verdict(v), s.Since.Time.UTC(), s.LastSeen.UTC(), s.Version.Time.UTC()
		if was != nil {
			s.Before = &state.Before{Verdict: verdict.Verdict(*was), Version: state.Version{Time: at.UTC(), ID: *id}}
		}
		return s, err
	})
	check(w.t, err)
	for i := range want {
		want[i].Hash = state.Hash{}
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatalf("after %s: -by hand +kept:\n%s", after, diff)
	}
	rows, err = w.other.Query(w.t.Context(), `SELECT subject, path, was, verdict, was_revision, revision, ts, decision_id, was_ts, was_id, stored_at, late FROM decision_flips ORDER BY flip_id`)
	check(w.t, err)
	flips, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f state.Flip, err error) {
		var was, is string
		err = row.Scan(&f.Subject, &f.Path, &was, &is, &f.WasRevision, &f.Revision, &f.Time, &f.Version.ID, &f.WasVersion.Time, &f.WasVersion.ID, &f.StoredAt, &f.Late)
		f.Was, f.Verdict, f.Time, f.WasVersion.Time, f.StoredAt = verdict.Verdict(was), verdict.Verdict(is), f.Time.UTC(), f.WasVersion.Time.UTC(), f.StoredAt.UTC()
		return f, err
	})
	check(w.t, err)
	if diff := gocmp.Diff(f.Flips, flips, cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatalf("after %s: flips: -by hand +kept:\n%s", after, diff)
	}
	var n int64
	w.Query(w.t, `SELECT states FROM decision_states_mark`, &n)
	if n != int64(len(want)) {
		w.t.Fatalf("after %s: the mark has %d states, and there are %d", after, n, len(want))
	}
}

func (w *stated) begin() {
	tx, err := w.writer.Begin(w.t.Context())
	check(w.t, err)
	w.open, w.pending = tx, w.store(tx, 2)
}

func (w *stated) end(commit bool) {
	if commit {
		check(w.t, w.open.Commit(w.t.Context()))
		w.all = append(w.all, w.pending...)
	} else {
		check(w.t, w.open.Rollback(w.t.Context()))
	}
	w.open, w.pending = nil, nil
}

// kill ends the sessions of the pool in the middle of what they do.
func (w *stated) kill() {
	_, err := w.other.Exec(w.t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), $1) AND application_name NOT LIKE '%test%'`, w.writer.PgConn().PID())
	check(w.t, err)
}

// TestStates_AnyHistory stores late and early, in transactions that are long, follows by two processes in portions of any size, kills them,
// archives and restores. The tables always end as a fold by hand of all that was stored.
func TestStates_AnyHistory(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3, 4, 5, 6} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newStated(t, seed)
			both := []*historydb.States{w.states(1 + w.random.IntN(7)), w.states(1 + w.random.IntN(50))}
			var moved []string
			for range 60 {
				moved = append(moved, w.step(both))
			}
			if w.open != nil {
				w.end(true)
			}
			w.settled(both[0])
			w.exact(strings.Join(moved, ", "))
			w.settled(both[1])
			w.exact("nothing more")
		})
	}
}

func (w *stated) step(both []*historydb.States) string {
	switch n := w.random.IntN(20); {
	case n < 6:
		w.all = append(w.all, w.store(w.other, 1+w.random.IntN(12))...)
		return "store"
	case n < 8:
		if w.open != nil {
			w.end(w.random.IntN(3) > 0)
			return "end"
		}
		w.begin()
		return "open"
	case n < 14:
		w.follow(both[w.random.IntN(2)])
		return "follow"
	case n < 16:
		var all sync.WaitGroup
		for _, s := range both {
			all.Go(func() { _, _ = s.Follow(w.t.Context()) })
		}
		if n == 15 {
			w.kill()
		}
		all.Wait()
		return "both follow"
	case w.open != nil:
		return "nothing" // the open writer holds the table
	}
	w.settled(both[0]) // decisions that are archived before are in no state
	day := archive.Day{Time: w.from.AddDate(0, 0, w.random.IntN(3))}
	_, err := w.c.Archive(w.t.Context(), day, false)
	check(w.t, err)
	w.exact("the archive")
	if w.random.IntN(2) == 0 {
		w.follow(both[1])
	}
	if w.again(day) > 0 {
		w.settled(both[0])
		w.exact("decisions of a day that left")
	}
	if _, err := w.c.Restore(w.t.Context(), day); err != nil {
		return fmt.Sprintf("archive %s", day)
	}
	w.follow(both[0])
	w.exact("the restore")
	return fmt.Sprintf("archive and restore %s", day)
}

// A transaction that is open holds the mark back, however much is stored meanwhile; its rows are followed once it commits.
func TestStates_LateCommitIsNotSkipped(t *testing.T) {
	t.Parallel()
	w := newStated(t, 7)
	s := w.states(3)
	w.all = append(w.all, w.store(w.other, 5)...)
	w.settled(s)
	w.begin()
	for range 5 {
		w.all = append(w.all, w.store(w.other, 5)...)
		w.follow(s)
	}
	var passed bool
	w.Query(t, `SELECT stored_before > (SELECT max(stored_at) FROM decision_logs) FROM decision_states_mark`, &passed)
	if passed {
		t.Error("the mark passed an open transaction")
	}
	if r := w.follow(s); r.Lag <= 0 {
		t.Errorf("the lag is %v", r.Lag)
	}
	w.end(true)
	w.settled(s)
	w.exact("the commit")
}

// A transaction that is open from before the first round lets no state begin, and each round says so.
func TestStates_UnbegunWhileATransactionIsOpen(t *testing.T) {
	t.Parallel()
	w := newStated(t, 8)
	w.all = append(w.all, w.store(w.other, 5)...)
	w.begin()
	s := w.states(3)
	for range 3 {
		if r := w.follow(s); !r.Unbegun || r.Busy {
			t.Errorf("a round while nothing can begin: %+v", r)
		}
	}
	w.end(true)
	w.settled(s)
	w.exact("the commit")
	if r := w.follow(s); r.Unbegun {
		t.Errorf("a round after the first states: %+v", r)
	}
}

// The archive reads a day in one transaction, for minutes if the day is large.
func TestStates_GoOnWhileADayIsRead(t *testing.T) {
	t.Parallel()
	w := newStated(t, 11)
	s := w.states(3)
	w.all = append(w.all, w.store(w.other, 30)...)
	day, err := w.c.Table.Open(t.Context(), archive.Day{Time: w.from})
	check(t, err)
	defer day.Close()
	check(t, day.Settle(t.Context()))
	_, err = day.Where(t.Context())
	check(t, err)
	shape, err := day.Shape(t.Context())
	check(t, err)
	read := 0
	_, err = day.Read(t.Context(), shape, func([]byte) error {
		if read++; read == 1 {
			w.all = append(w.all, w.store(w.other, 5)...)
			w.settled(s)
			w.exact("half of a read")
		}
		return nil
	})
	check(t, err)
	if read == 0 {
		t.Fatal("the day has no rows")
	}
}

// A round is killed at each of its statements. All that it did is undone, and the next round does it.
func TestStates_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	w := newStated(t, 8)
	s := w.states(4)
	for _, table := range []string{"decision_states", "decision_flips", "decision_states_paths", "decision_states_revisions", "decision_states_mark"} {
		w.Exec(t, fmt.Sprintf(`CREATE OR REPLACE FUNCTION dies() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
			CREATE TRIGGER dies BEFORE INSERT OR UPDATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION dies()`, table))
		w.all = append(w.all, w.store(w.other, 30)...)
		for range 3 {
			_, _ = s.Follow(t.Context())
		}
		w.Exec(t, `DROP TRIGGER dies ON `+table)
		w.settled(s)
		w.exact(table)
	}
}

func TestStates_AgainChangesNothing(t *testing.T) {
	t.Parallel()
	w := newStated(t, 9)
	w.all = append(w.all, w.store(w.other, 100)...)
	w.settled(w.states(10))
	before := w.dump()
	for range 3 {
		w.settled(w.states(1000))
	}
	if after := w.dump(); after != before {
		t.Errorf("-before +after:\n%s", gocmp.Diff(before, after))
	}
}

func (w *stated) dump() (text string) {
	w.Query(w.t, `SELECT (SELECT string_agg(s::text, E'\n' ORDER BY subject, path) FROM decision_states s) || (SELECT string_agg(f::text, E'\n' ORDER BY flip_id) FROM decision_flips f)
		|| (SELECT string_agg(r::text, E'\n' ORDER BY path, revision) FROM decision_states_revisions r)`, &text)
	return text
}

// More decisions were stored at one time than fit into memory. The server sorts them then, and none is left out.
func TestStates_ManyStoredAtOnce(t *testing.T) {
	t.Parallel()
	w := newStated(t, 14)
	tx, err := w.writer.Begin(t.Context())
	check(t, err)
	w.all = append(w.all, w.store(tx, 60)...)
	check(t, tx.Commit(t.Context()))
	w.all = append(w.all, w.store(w.other, 20)...)
	w.settled(w.states(7))
	w.exact("one transaction of 60")
}

// Two processes read the same decisions. The one that writes later finds the mark moved, and writes nothing.
func TestStates_TwoReadOneWrites(t *testing.T) {
	t.Parallel()
	w := newStated(t, 15)
	w.all = append(w.all, w.store(w.other, 40)...)
	both := []*historydb.States{w.states(50), w.states(50)}
	both[0].BeforeWrite(func() { w.settled(both[1]) })
	if r := w.follow(both[0]); !r.Busy || r.Rows != 0 {
		t.Errorf("%+v", r)
	}
	w.exact("two at once")
	both[0].BeforeWrite(nil)
	w.settled(both[0])
	w.exact("nothing more")
}
