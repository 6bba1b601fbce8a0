package pgmodel_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgmodel"
)

// within runs a test of a server in virtual time.
func within(t *testing.T, test func(t *testing.T, s *pgmodel.Server, db *store.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		test(t, s, open(t, s))
	})
}

func wantCode(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", want)
	}
	if got := errclass.Classify(err).Code; got != want {
		t.Fatalf("code %s, want %s: %v", got, want, err)
	}
}

func try(db *store.Store, rows ...pipeline.Row) error {
	_, err := db.Store(context.Background(), rows, false)
	return err
}

func TestRestart_EndsSessionsAndComesBack(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		save(t, db, row("a", `{}`))
		s.Inject(pgmodel.Fault{Point: pgmodel.Commit, Delay: time.Second})
		done := make(chan error, 1)
		go func() { done <- try(db, row("b", `{}`)) }()
		synctest.Wait()
		s.Restart(10 * time.Second)
		wantCode(t, <-done, "57P01")
		wantCode(t, try(db, row("b", `{}`)), "network")
		time.Sleep(6 * time.Second)
		wantCode(t, try(db, row("b", `{}`)), "57P03")
		time.Sleep(5 * time.Second)
		same(t, save(t, db, row("a", `{}`), row("b", `{}`)), []pipeline.Outcome{present, stored})
	})
}

func TestCrash_KeepsCommittedRows(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		s.Inject(pgmodel.Fault{Point: pgmodel.CommitApplied, Delay: time.Second})
		done := make(chan error, 1)
		go func() { done <- try(db, row("a", `{}`)) }()
		synctest.Wait()
		same(t, len(s.Rows()), 1)
		s.Crash(0)
		wantCode(t, <-done, "ambiguous_commit")
		synctest.Wait()
		same(t, []int{s.Sessions(), len(s.Rows())}, []int{0, 1})
		same(t, save(t, db, row("a", `{}`)), []pipeline.Outcome{present})
	})
}

func TestConnect_Failures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault pgmodel.Fault
		code  string
	}{
		{pgmodel.Fault{Point: pgmodel.Connect}, "network"},
		{pgmodel.Fault{Point: pgmodel.Connect, SQLSTATE: "53300"}, "53300"},
		{pgmodel.Fault{Point: pgmodel.Connect, SQLSTATE: "28P01"}, "28P01"},
		{pgmodel.Fault{Point: pgmodel.Connect, SQLSTATE: "57P03"}, "57P03"},
		{pgmodel.Fault{Point: pgmodel.Connect, Delay: time.Minute}, "timeout"},
		{pgmodel.Fault{Point: pgmodel.Startup}, "network"},
		{pgmodel.Fault{Point: pgmodel.Startup, Delay: time.Minute}, "timeout"},
		{pgmodel.Fault{Point: pgmodel.Check, SQLSTATE: "57P01", Severity: "FATAL"}, "57P01"},
	} {
		t.Run(fmt.Sprint(c.fault.Point, " ", c.code), func(t *testing.T) {
			t.Parallel()
			within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
				c.fault.Count = -1
				heal := s.Inject(c.fault)
				err := try(db, row("a", `{}`))
				wantCode(t, err, c.code)
				if c.fault.Point == pgmodel.Connect && c.code == "network" && !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("not refused: %v", err)
				}
				heal()
				same(t, save(t, db, row("a", `{}`)), []pipeline.Outcome{stored})
			})
		})
	}
}

// A statement outlives its client: here it is COMMIT, and a retry finds the row there.
func TestStatement_OutlivesItsClient(t *testing.T) {
	t.Parallel()
	for _, f := range []pgmodel.Fault{
		{Point: pgmodel.Commit, Delay: time.Minute, LivesOn: true},
		{Point: pgmodel.Commit, Delay: time.Minute, LivesOn: true, Cut: true},
	} {
		t.Run(fmt.Sprintf("cut %v", f.Cut), func(t *testing.T) {
			t.Parallel()
			within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
				s.Inject(f)
				begin := time.Now()
				wantCode(t, try(db, row("a", `{}`)), "ambiguous_commit")
				if cut := time.Since(begin) == 0; cut != f.Cut {
					t.Errorf("the client heard of it after %v", time.Since(begin))
				}
				same(t, len(s.Rows()), 0)
				wantCode(t, try(db, row("a", `{}`)), "55P03") // it waits for the row, and not for ever
				time.Sleep(time.Minute)
				same(t, len(s.Rows()), 1)
				same(t, save(t, db, row("a", `{}`)), []pipeline.Outcome{present})
			})
		})
	}
}

func TestDeadlock_OneSessionFails(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, _ *store.Store) {
		// Docket sorts its rows, so two batches cannot: two statements in each transaction can.
		one, two := begun(t, s), begun(t, s)
		same(t, []string{insert(one, "a"), insert(two, "b")}, []string{"INSERT 0 1", "INSERT 0 1"})
		done := make(chan string, 1)
		go func() { done <- insert(one, "b") }()
		time.Sleep(100 * time.Millisecond)
		same(t, insert(two, "a"), "40P01")
		same(t, <-done, "INSERT 0 1")
		same(t, ask(one, "COMMIT"), "COMMIT")
		same(t, ask(two, "COMMIT"), "ROLLBACK")
		same(t, len(s.Rows()), 2)
	})
}

func TestHang_AnswersAfterwards(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		save(t, db, row("a", `{}`))
		heal := s.Hang()
		wantCode(t, try(db, row("b", `{}`)), "timeout")
		time.AfterFunc(5*time.Second, heal)
		begin := time.Now()
		same(t, save(t, db, row("b", `{}`)), []pipeline.Outcome{stored})
		same(t, time.Since(begin), 5*time.Second)
	})
}

func TestFull_AndTriggers(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		heal := s.Full()
		wantCode(t, try(db, row("a", `{}`)), "53100")
		wantCode(t, db.Probe(t.Context(), noon), "53100")
		heal()
		heal = s.Refuse(func(r pgmodel.Row) string {
			if strings.Contains(string(r.Raw), "bad") {
				return "P0001"
			}
			return ""
		})
		wantCode(t, try(db, row("a", `{}`), row("b", `"bad"`)), "P0001")
		same(t, save(t, db, row("a", `{}`)), []pipeline.Outcome{stored})
		heal()
		same(t, save(t, db, row("b", `"bad"`)), []pipeline.Outcome{stored})
	})
}

func TestInject_Count(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		s.Inject(pgmodel.Fault{Point: pgmodel.Insert, After: 1, Count: 2, SQLSTATE: "40001"})
		s.Inject(pgmodel.Fault{Point: pgmodel.Insert, MinRows: 2, Count: -1, SQLSTATE: "53200"})
		var got []string
		for i := range 4 {
			got = append(got, errclass.Classify(try(db, row(fmt.Sprint(i), `{}`))).Code)
		}
		got = append(got, errclass.Classify(try(db, row("x", `{}`), row("y", `{}`))).Code)
		same(t, got[1:3], []string{"40001", "40001"})
		same(t, got[4], "53200")
		same(t, len(s.Rows()), 2)
	})
}

func TestObserve_EachTransaction(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		var got []string
		s.Observe(func(e pgmodel.Event) {
			got = append(got, fmt.Sprintf("%d %s %s cut=%v rows=%d applied=%v", e.Session, e.Point, e.SQLSTATE, e.Cut, len(e.Rows), e.Applied))
		})
		s.Inject(pgmodel.Fault{Point: pgmodel.CommitApplied})
		_ = try(db, row("a", `{}`), row("b", `{}`))
		synctest.Wait()
		same(t, got, []string{
			"101 startup  cut=false rows=0 applied=false", "101 check  cut=false rows=0 applied=false",
			"101 begin  cut=false rows=0 applied=false", "101 limits  cut=false rows=0 applied=false",
			"101 insert  cut=false rows=2 applied=false", "101 table  cut=false rows=0 applied=false",
			"101 triggers  cut=false rows=0 applied=false", "101 commit  cut=false rows=2 applied=true",
			"101 commit applied  cut=true rows=2 applied=true",
		})
	})
}

func TestUnknown_IsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		s := pgmodel.New(pgmodel.Config{Unknown: func(sql string) { told = append(told, sql) }})
		defer s.Close()
		pg := connect(t, s)
		same(t, ask(pg, "SELECT 1"), "42601")
		same(t, [][]string{told, s.Unknown()}, [][]string{{"SELECT 1"}, {"SELECT 1"}})
	})
}

func connect(t testing.TB, s *pgmodel.Server) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.ParseConfig("postgres://docket@db:5432/docket") // asks for TLS first
	if err != nil {
		t.Fatal(err)
	}
	c.DialFunc = s.Dial
	c.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	pg, err := pgconn.ConnectConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close(context.Background()) })
	return pg
}

func begun(t testing.TB, s *pgmodel.Server) *pgconn.PgConn {
	t.Helper()
	pg := connect(t, s)
	same(t, ask(pg, "BEGIN"), "BEGIN")
	return pg
}

func ask(pg *pgconn.PgConn, sql string, params ...[]byte) string {
	var inBinary []int16
	if len(params) > 0 {
		inBinary = []int16{1}
	}
	r := pg.ExecParams(context.Background(), sql, params, nil, inBinary, inBinary).Read()
	var e *pgconn.PgError
	switch {
	case errors.As(r.Err, &e):
		return e.Code
	case r.Err != nil:
		return r.Err.Error()
	}
	return r.CommandTag.String()
}

const insertSQL = `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
SELECT i.decision_id, i.ts, i.raw::jsonb, i.topic, i.part, i.off, i.idx
  FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::int4[], $6::int8[], $7::int4[]) AS i(decision_id, ts, raw, topic, part, off, idx)
    ON CONFLICT (decision_id, ts) DO NOTHING RETURNING decision_id, ts`

func insert(pg *pgconn.PgConn, id string) string {
	return ask(pg, insertSQL, arrayOf(25, []byte(id)), arrayOf(1184, make([]byte, 8)), arrayOf(25, []byte(`{}`)), arrayOf(25, []byte("t")),
		arrayOf(23, make([]byte, 4)), arrayOf(20, make([]byte, 8)), arrayOf(23, make([]byte, 4)))
}

// arrayOf is an array with one element, in binary form.
func arrayOf(oid uint32, elem []byte) []byte {
	var b []byte
	for _, n := range []uint32{1, 0, oid, 1, 1, uint32(len(elem))} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return append(b, elem...)
}

// A CHECK is added while a transaction has stored a row that it would refuse: the change waits for it, and those that come
// meanwhile wait for the change.
func TestAddConstraint_BetweenTransactions(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		s.Inject(pgmodel.Fault{Point: pgmodel.Commit, Delay: time.Second})
		before, after := make(chan error, 1), make(chan error, 1)
		go func() { before <- try(db, row("a", `{}`)) }()
		synctest.Wait()
		began := time.Now()
		go func() {
			s.AddConstraint(pgmodel.Constraint{Name: "late", Columns: []string{"decision_id"}, Refuses: func(pgmodel.Row) bool { return true }})
			if time.Since(began) < time.Second {
				t.Error("the constraint was added while a transaction used the table")
			}
		}()
		synctest.Wait()
		go func() { after <- try(db, row("b", `{}`)) }()
		if err := <-before; err != nil {
			t.Error(err)
		}
		wantCode(t, <-after, "23514")
		same(t, save(t, db, row("a", `{}`)), []pipeline.Outcome{present})
	})
}
