//go:build integration

package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
)

// ends replaces relay, consumer and watcher. It publishes the outbox and ends each retry as how says; "" means
// stored.
func (d *tryOut) ends(ctx context.Context, how func(ledger.Sending) (code string)) {
	offset := int64(1 << 20)
	for ctx.Err() == nil {
		sendings, err := d.book.Claim(ctx, "stand-in", 200, time.Minute)
		if err != nil && ctx.Err() == nil {
			d.t.Errorf("claim: %v", err)
			return
		}
		var placed []ledger.Placed
		var stored []int64
		var why []string
		var dead []ledger.Letter
		for _, s := range sendings {
			offset++
			placed = append(placed, ledger.Placed{SendingID: s.ID, Partition: 0, Offset: offset})
			code := how(s)
			if code == "" {
				stored, why = append(stored, s.ID), append(why, "found")
				continue
			}
			o := envelope.Origin{Topic: s.Topic, Offset: offset, Index: 0, Timestamp: noonOfTrial}
			dead = append(dead, ledger.Letter{
				ID: envelope.ID(o, s.Value), Origin: o, Cause: envelope.Cause{Kind: envelope.Transient, Code: code, Message: "again"},
				Found: ledger.Found{Topic: "decision-logs-dlq", Offset: offset, Stamp: time.Now()}, FirstFailedAt: time.Now(), FailedAt: time.Now(),
				Key: s.Key, Value: s.Value, RetryOf: s.Mark,
			})
		}
		by := ledger.Actor{Name: "stand-in", Why: "it has its row"}
		for _, do := range []func() error{
			func() error { return d.book.Published(ctx, "stand-in", placed, time.Hour) },
			func() error { return d.book.Stored(ctx, stored, why, by) },
			func() error { _, err := d.book.Enter(ctx, dead, 3, by); return err },
		} {
			if err := do(); len(sendings) > 0 && err != nil && ctx.Err() == nil {
				d.t.Errorf("end retries: %v", err)
				return
			}
		}
		waitABit(ctx, 20*time.Millisecond)
	}
}

func waitABit(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// runs runs until stop is called, or the test ends.
func (d *tryOut) runs(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f(ctx) })
	stop = func() { cancel(); wg.Wait() }
	d.t.Cleanup(stop)
	return stop
}

// jobLease is longer than any wait of the tests. A desk that takes a job earlier did not wait for the lease to end.
const jobLease = 5 * time.Minute

func (d *tryOut) jobs(holder string) (stop func()) {
	j := worker.NewJobs(worker.JobsConfig{Holder: holder, Step: 50 * time.Millisecond, Lease: jobLease}, d.book, d.db, zerolog.Nop())
	return d.runs(func(ctx context.Context) { _ = j.Run(ctx) })
}

func (d *tryOut) many(n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = trialValue(fmt.Sprint("id-", i), "ok", "")
	}
	return d.enter(envelope.Transient, values...)
}

func (d *tryOut) job(j ledger.Job) int64 {
	d.t.Helper()
	j.Operator, j.Reason = "ann", "it is mended"
	made, err := d.book.CreateJob(context.Background(), j)
	if err != nil {
		d.t.Fatal(err)
	}
	return made.ID
}

func (d *tryOut) becomes(id int64, what string, is func(ledger.Job) bool) ledger.Job {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		j, err := d.book.Job(context.Background(), id)
		if err != nil {
			d.t.Fatal(err)
		}
		if is(j) {
			return j
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("the job is never %s: it is %s: %s", what, j.State, j.Note)
		}
	}
}

func (d *tryOut) ended(id int64, state ledger.JobState) ledger.Job {
	d.t.Helper()
	return d.becomes(id, string(state), func(j ledger.Job) bool { return j.State == state })
}

// once reports whether no letter was sent more than once.
func (d *tryOut) once() bool {
	var twice int
	d.pg.Query(d.t, `SELECT count(*) FROM (SELECT dead_letter_id FROM dead_letter_outbox GROUP BY 1 HAVING count(*) > 1) x`, &twice)
	return twice == 0
}

func (d *tryOut) states() map[ledger.State]int64 {
	counts, err := d.book.Counts(context.Background(), ledger.Filter{})
	if err != nil {
		d.t.Fatal(err)
	}
	return counts
}

func TestJobs_RetryAllOnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	d.many(2000)
	id := d.job(ledger.Job{Act: ledger.Retried})
	d.jobs("desk-1")
	d.jobs("desk-2")
	d.becomes(id, "waiting for its first record", func(j ledger.Job) bool { return strings.Contains(j.Note, "waiting for the result of the first record") })
	if j := d.ended(id, ledger.JobRunning); j.Sent != 1 {
		t.Errorf("sent %d before the first one ended", j.Sent)
	}
	d.runs(func(ctx context.Context) { d.ends(ctx, func(ledger.Sending) string { return "" }) })
	j := d.ended(id, ledger.JobDone)
	if j.Note != "done: sent 2,000 of 2,000, 2,000 stored" || j.Stored != 2000 || d.states()[ledger.Resolved] != 2000 || !d.once() {
		t.Errorf("%+v, %v", j, d.states())
	}
}

func TestJobs_FirstFailAlikeOnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	d.many(300)
	id := d.job(ledger.Job{Act: ledger.Retried})
	var mended sync.Map
	d.jobs("desk-1")
	d.runs(func(ctx context.Context) {
		d.ends(ctx, func(ledger.Sending) string {
			if _, ok := mended.Load("yes"); ok {
				return ""
			}
			return "23514"
		})
	})
	j := d.ended(id, ledger.JobStopped)
	if j.Note != "the first 5 failed in the same way: 23514; nothing more was sent" || j.Sent != 5 || j.Dead != 5 {
		t.Errorf("%+v", j)
	}
	mended.Store("yes", true)
	if _, err := d.book.ResumeJob(t.Context(), id, ledger.Actor{Name: "ann", Why: "mended"}); err != nil {
		t.Fatal(err)
	}
	j = d.ended(id, ledger.JobDone)
	if j.Stored != 295 || j.Dead != 5 || !d.once() || d.states()[ledger.Pending] != 5 {
		t.Errorf("%+v, %v", j, d.states())
	}
}

func TestJobs_StoppedAndHandedOverOnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	(&pgtest.Letters{DB: d.pg, T: t}).FourEyes(false) // a job that resolves waits for nobody
	d.many(500)
	id := d.job(ledger.Job{Act: ledger.Retried, Rate: 100, Limit: 400})
	stop := d.jobs("desk-1")
	d.runs(func(ctx context.Context) { d.ends(ctx, func(ledger.Sending) string { return "" }) })
	d.becomes(id, "at 50", func(j ledger.Job) bool { return j.Sent >= 50 })
	stop() // desk-1's lease would last longer than the next line waits
	d.jobs("desk-2")
	d.becomes(id, "taken over", func(j ledger.Job) bool { return strings.HasPrefix(j.Owner, "desk-2/") })
	d.becomes(id, "at 150", func(j ledger.Job) bool { return j.Sent >= 150 })
	stopped, err := d.book.StopJob(t.Context(), id, "wait", ledger.Actor{Name: "bob", Why: "wait"})
	if err != nil || stopped.State != ledger.JobStopped {
		t.Fatal(err, stopped.State)
	}
	d.job(ledger.Job{Act: ledger.Closed, Limit: 20, Filter: ledger.Filter{States: []ledger.State{ledger.Pending}}})
	if j := d.ended(id+1, ledger.JobDone); j.Sent != 20 || j.Note != "done: resolved 20 of 20" { // the desk that does this has left the other job
		t.Errorf("%+v", j)
	}
	sent := d.ended(id, ledger.JobStopped).Sent
	if _, err := d.book.ResumeJob(t.Context(), id, ledger.Actor{Name: "ann", Why: "go on"}); err != nil {
		t.Fatal(err)
	}
	j := d.ended(id, ledger.JobDone)
	if j.Sent != 400 || j.Stored != 400 || sent >= 400 || !d.once() || d.states()[ledger.Pending] != 80 {
		t.Errorf("%+v, %d at the stop, %v", j, sent, d.states())
	}
	var audited int
	d.pg.Query(t, fmt.Sprintf(`SELECT count(*) FROM dead_letter_audit WHERE act = 'retried' AND actor = 'ann' AND starts_with(why, 'it is mended') AND job_id = %d`, id), &audited)
	if audited != 400 {
		t.Errorf("%d retries are audited with who and why", audited)
	}
}

func TestJobs_UnwellTableOnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	d.many(10)
	d.pg.BeforeInsert(t, `RAISE EXCEPTION 'no' USING ERRCODE = '42501';`)
	id := d.job(ledger.Job{Act: ledger.Retried})
	d.jobs("desk-1")
	j := d.ended(id, ledger.JobStopped)
	if j.Sent != 0 || j.Note != "the table refused a known-good row 3 times in a row: 42501; nothing more was sent" {
		t.Errorf("%+v", j)
	}
}

func TestSchedule_OnPostgres(t *testing.T) {
	t.Parallel()
	d := newTryOut(t)
	d.many(120)
	d.pg.Exec(t, `UPDATE dead_letters SET state = 'PROCESSING', changed_at = clock_timestamp(), changed_by = 'x', changed_act = 'retried', why = 'x' WHERE origin_offset < 5`)
	d.pg.Exec(t, `UPDATE dead_letters SET state = 'FAILED', changed_at = clock_timestamp(), changed_by = 'x', changed_act = 'died', why = 'x' WHERE origin_offset < 5`)
	d.enter(envelope.Data, trialValue("data", "ok", ""))
	for _, holder := range []string{"desk-1", "desk-2"} {
		s, err := worker.NewSchedule(worker.ScheduleConfig{
			Holder: holder, First: 10 * time.Millisecond, Interval: time.Minute, Backoff: time.Millisecond,
			Kinds: []envelope.Kind{envelope.Transient, envelope.Exhausted}, Lease: time.Hour, MaxAttempts: 3,
		}, d.book, d.db, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		d.runs(func(ctx context.Context) { _ = s.Run(ctx) })
	}
	n := 0
	d.runs(func(ctx context.Context) {
		d.ends(ctx, func(ledger.Sending) string {
			if n++; n%2 == 0 {
				return "57P03"
			}
			return ""
		})
	})
	var ended, audited int
	for deadline := time.Now().Add(patience); ended < 115 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		d.pg.Query(t, `SELECT count(*) FROM dead_letter_outbox WHERE ended_at IS NOT NULL`, &ended)
	}
	d.pg.Query(t, `SELECT count(*) FROM dead_letter_audit WHERE act = 'retried' AND actor = 'schedule'`, &audited)
	counts := d.states()
	if ended != 115 || audited != 115 || !d.once() || counts[ledger.Failed] != 5 || counts[ledger.Resolved] != 58 || counts[ledger.Pending] != 58 {
		t.Errorf("%d retries, %d audited, %v", ended, audited, counts)
	}
}
