//go:build integration

package historydb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"

	"github.com/jackc/pgx/v5"
)

// asked asks a reader for decisions in every way, and says how often each is in an answer.
type asked struct {
	table *historydb.Reader
	days  *cold.Days
}

// count returns what is wrong: a decision that is not in an answer once. told are the gaps that answers name instead.
func (q asked) count(t *testing.T, ids ...string) (wrong, told []string) {
	t.Helper()
	ctx := t.Context()
	both := cold.Store{Table: q.table, Days: q.days}
	day, _ := archive.ParseDay("2026-03-04")
	for _, oldest := range []bool{false, true} {
		in, gaps := map[string]int{}, 0
		for p := (reader.Page{Limit: 7, Oldest: oldest, Payload: true}); ; {
			found, err := both.Search(ctx, reader.Filter{Since: day.Time, Until: day.Next().Time}, p)
			if err != nil {
				t.Fatalf("a search: %v", err)
			}
			gaps += len(found.NotLooked)
			told = append(told, reader.GapTexts(found.NotLooked)...)
			for _, d := range found.Decisions {
				in[d.ID]++
			}
			if p.After = found.Next; p.After == "" {
				break
			}
		}
		for _, id := range ids {
			if in[id] == 0 && gaps == 0 {
				wrong = append(wrong, "no search has "+id)
			}
		}
		for id, n := range in {
			if n > 1 {
				wrong = append(wrong, fmt.Sprintf("a search has %s %d times", id, n))
			}
		}
	}
	for _, id := range ids {
		ctx, parts := reader.WithParts(t.Context())
		rows, err := q.table.ByID(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		cold := q.days.Find(ctx, []string{id})
		told = append(told, reader.GapTexts(cold.Gaps)...)
		seen := map[reader.Spot]bool{}
		for _, d := range append(rows, cold.Decisions...) {
			seen[reader.SpotOf(d)] = true
		}
		if len(rows) > 1 || len(seen) > 1 || len(seen) == 0 && len(cold.Gaps)+len(parts.NotRead()) == 0 {
			wrong = append(wrong, fmt.Sprintf("%s is found as %d, with %d rows", id, len(seen), len(rows)))
		}
		told = append(told, reader.GapTexts(parts.NotRead())...)
	}
	return wrong, told
}

func (a *archived) asked(t *testing.T, url string) asked {
	t.Helper()
	check(t, os.MkdirAll(a.dir, 0o700))
	a.c.Table = historydb.NewArchives(open(t, a.URL, 0).DB).CountTo()
	return asked{
		historydb.NewReader(open(t, url, 0).DB).Patient(),
		cold.New(cold.Config{Where: a.dir, Table: "decision_logs", LineBytes: 1 << 20, Patience: time.Minute, Shelf: func() (archive.Shelf, error) { return archive.Dir(a.dir), nil }}),
	}
}

// TestLeaving_EachStepAnswersEachDecision: each decision is in every answer at each step of an archive, also for a role that may only
// read the table. One of them comes after the archive read the day.
func TestLeaving_EachStepAnswersEachDecision(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 40)
	a.Exec(t, `UPDATE decision_logs SET decision_id = 'number-' || decision_id`)
	asker := a.asked(t, a.Role(t, "SELECT"))
	ids := []string{"number-d7", "number-d40"}
	var steps []string
	a.c.Told = func(s archive.Step) {
		steps = append(steps, string(s))
		switch {
		case s == archive.StepWritten && len(ids) == 2:
			a.rows(50, 1)
			ids = append(ids, "d50")
		case s == archive.StepDetached:
			a.rows(60, 1)
			a.Exec(t, `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) SELECT decision_id, ts, raw, 't', 0, 900, 0 FROM decision_logs_leaving_20260304 WHERE decision_id = 'number-d7'`) // it is delivered again
			ids = append(ids, "d60")
			for prefix, n := range map[string]int{"number": 5, "number-d40": 1, "d5": 1} {
				if found, err := asker.table.Begins(t.Context(), prefix, 5); err != nil || len(found) != n {
					t.Errorf("%d begin with %s: %v", len(found), prefix, err)
				}
			}
		}
		if wrong, told := asker.count(t, ids...); len(wrong)+len(told) > 0 {
			t.Errorf("after %s: %s", s, strings.Join(append(wrong, told...), "\n"))
		}
	}
	if done := a.archive(false); !done.Late || !done.Dropped {
		t.Fatalf("%+v", done)
	}
	if got := strings.Join(steps, " "); !strings.Contains(got, "detached late reading written verified dropped") {
		t.Errorf("steps: %s", got)
	}
}

// TestLeaving_Followed: a follower is told of decisions that are stored while their day is archived, once each. If the day is dropped
// between two looks, it is told that some may be missing.
func TestLeaving_Followed(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 40)
	asker := a.asked(t, a.URL)
	var tail reader.Tail
	var missed []string
	next := func(limit int) (ids []string) {
		t.Helper()
		ctx, parts := reader.WithParts(t.Context())
		found, on, err := asker.table.Follow(ctx, reader.Filter{}, tail, limit, true)
		check(t, err)
		tail = on
		for _, d := range found {
			ids = append(ids, d.ID)
		}
		missed = append(missed, reader.GapTexts(parts.NotRead())...)
		return ids
	}
	next(9)
	a.c.Told = func(s archive.Step) {
		switch s {
		case archive.StepVerified:
			a.rows(50, 3) // too late for the first archive
		case archive.StepDetached:
			a.rows(60, 1) // into the table
			same(t, next(2), []string{"d50", "d51"})
			same(t, next(9), []string{"d52", "d60"})
			same(t, next(9), []string(nil))
			a.c.Told = nil
		}
	}
	if done := a.archive(false); !done.Late || !done.Dropped {
		t.Fatalf("%+v", done)
	}
	same(t, next(9), []string(nil))
	if len(missed) > 0 {
		t.Errorf("missed %v", missed)
	}
	a.rows(70, 2)
	a.archive(false) // between two looks
	same(t, next(9), []string(nil))
	if len(missed) != 1 || !strings.Contains(missed[0], "day 2026-03-04") {
		t.Errorf("missed %v", missed)
	}
	same(t, next(9), []string(nil))
	if len(missed) != 1 {
		t.Errorf("missed again: %v", missed)
	}
}

// TestLeaving_BetweenTwoStatements has a day leave while a request that has seen it in the table waits for its next statement.
func TestLeaving_BetweenTwoStatements(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 40)
	r := historydb.NewReader(open(t, a.URL, 2*time.Minute).DB).Patient()
	minute := a.day.Add(time.Minute)
	for name, ask := range map[string]func() ([]reader.Decision, error){
		"an id": func() ([]reader.Decision, error) { return r.ByID(t.Context(), "d7") },
		"a page": func() ([]reader.Decision, error) {
			found, err := r.Search(t.Context(), reader.Filter{Since: a.day.Time, Until: minute}, reader.Page{Limit: 9})
			return found.Decisions, err
		},
	} {
		before, err := ask()
		check(t, err)
		conn := pgxConnect(t, a.URL)
		tx, err := conn.Begin(t.Context())
		check(t, err)
		_, err = tx.Exec(t.Context(), `LOCK TABLE decision_logs; ALTER TABLE decision_logs DETACH PARTITION decision_logs_p20260304; ALTER TABLE decision_logs_p20260304 RENAME TO decision_logs_leaving_20260304`)
		check(t, err)
		type answer struct {
			all []reader.Decision
			err error
		}
		done := make(chan answer, 1)
		go func() {
			all, err := ask()
			done <- answer{all, err}
		}()
		for waits := false; !waits && len(done) == 0; {
			a.Query(t, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'decision_logs'::regclass)`, &waits)
		}
		check(t, tx.Commit(t.Context()))
		if got := <-done; got.err != nil || len(before) == 0 || !reflect.DeepEqual(got.all, before) {
			t.Errorf("%s: %+v, %v, want %+v", name, got.all, got.err, before)
		}
		a.Exec(t, fmt.Sprintf(`ALTER TABLE decision_logs_leaving_20260304 RENAME TO decision_logs_p20260304; ALTER TABLE decision_logs ATTACH PARTITION decision_logs_p20260304 FOR VALUES FROM ('%s') TO ('%s')`,
			a.day.Format(time.RFC3339), a.day.AddDate(0, 0, 1).Format(time.RFC3339)))
		check(t, conn.Close(t.Context()))
	}
}

// TestLeaving_MoveWhileAsked: while a day leaves and comes back again and again, a decision is in an answer, or the answer has a gap.
func TestLeaving_MoveWhileAsked(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 400)
	asker := a.asked(t, a.URL)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := a.c.Archive(context.WithoutCancel(ctx), a.day, false); err != nil {
				done <- err
				return
			}
			if _, err := a.c.Restore(context.WithoutCancel(ctx), a.day); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		if wrong, _ := asker.count(t, "d7", "d399"); len(wrong) > 0 {
			t.Errorf("%s", strings.Join(wrong, "\n"))
			break
		}
	}
	cancel()
	check(t, <-done)
}

// TestLeaving_UnreadableDayIsTold: a role that may not read the day that was taken out is told so by every answer.
func TestLeaving_UnreadableDayIsTold(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	asker := a.asked(t, a.Role(t, "SELECT"))
	a.c.Told = func(s archive.Step) {
		if s != archive.StepDetached {
			return
		}
		a.Exec(t, `REVOKE ALL ON decision_logs_leaving_20260304 FROM PUBLIC; DO $$ DECLARE r text; BEGIN
			FOR r IN SELECT DISTINCT a.grantee::regrole FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'decision_logs_leaving_20260304'::regclass AND a.grantee NOT IN (0, c.relowner) LOOP EXECUTE 'REVOKE ALL ON decision_logs_leaving_20260304 FROM ' || r; END LOOP; END $$`)
		_, err := asker.table.ByID(t.Context(), "d7")
		told(t, "a look-up", err)
		_, err = asker.table.Begins(t.Context(), "d7", 3)
		told(t, "a prefix", err)
		_, err = asker.table.Having(t.Context(), []reader.Spot{{Time: a.day.Time, ID: "d7"}})
		told(t, "a look-up by identity", err)
		found, err := asker.table.Search(t.Context(), reader.Filter{}, reader.Page{Limit: 3})
		if err != nil || len(found.NotLooked) != 1 || !reader.RowsLack(found.NotLooked) || !strings.Contains(found.NotLooked[0].Name, "2026-03-04") {
			t.Errorf("a search: %v, %v", found.NotLooked, err)
		}
		if found, err := asker.table.Search(t.Context(), reader.Filter{Since: a.day.Next().Time}, reader.Page{Limit: 3}); err != nil || len(found.NotLooked) != 0 {
			t.Errorf("a search of other days: %v, %v", found.NotLooked, err)
		}
	}
	if done := a.archive(false); !done.Dropped {
		t.Fatalf("%+v", done)
	}
}

func told(t *testing.T, what string, err error) {
	t.Helper()
	if partial := reader.AsPartial(err); partial == nil || !strings.Contains(partial.Error(), "day 2026-03-04, which is being archived") {
		t.Errorf("%s: %v", what, err)
	}
}

// TestLeaving_PoliciesHoldThere: a table with policies for its rows shows no rows of a day that was taken out.
func TestLeaving_PoliciesHoldThere(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	a.Exec(t, `ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON decision_logs USING (decision_id = 'd7')`)
	asker := a.asked(t, a.Role(t, "SELECT"))
	a.c.Told = func(s archive.Step) {
		if s == archive.StepDetached {
			rows, err := asker.table.ByID(t.Context(), "d8")
			if told(t, "a look-up", err); len(rows) > 0 {
				t.Error("a row that the policy hides is shown")
			}
		}
	}
	if done := a.archive(false); !done.Dropped {
		t.Fatalf("%+v", done)
	}
}

// TestLeaving_SlowReaderKeepsNobodyWaiting has somebody read the day in a long transaction while it is to be dropped.
func TestLeaving_SlowReaderKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), a.URL)
		check(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	slow, other := connect(), connect()
	var tx pgx.Tx
	asked := make(chan error, 1)
	a.c.Told = func(s archive.Step) {
		if s != archive.StepDetached {
			return
		}
		var err error
		tx, err = slow.Begin(t.Context())
		check(t, err)
		_, err = tx.Exec(t.Context(), `SELECT count(*) FROM decision_logs_leaving_20260304`)
		check(t, err)
		go func() {
			asked <- func() error {
				for waits := false; !waits; { // for the slow reader
					if err := other.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'decision_logs_leaving_20260304'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted)`).Scan(&waits); err != nil {
						return err
					}
				}
				_, err := other.Exec(t.Context(), `SET lock_timeout = '5s'; SELECT count(*) FROM decision_logs_leaving_20260304`)
				return errors.Join(err, tx.Rollback(t.Context()))
			}()
		}()
	}
	if done := a.archive(false); !done.Dropped {
		t.Fatalf("%+v", done)
	}
	if err := <-asked; err != nil {
		t.Errorf("another reader: %v", err)
	}
}
