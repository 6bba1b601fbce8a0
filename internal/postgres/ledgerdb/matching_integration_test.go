//go:build integration

package ledgerdb_test

import (
	"fmt"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// Whatever becomes of what a job has moved, the next portion begins where the one before ended, and each letter is moved once.
func TestMatching_JobReadsNothingTwice(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	const n, portion = 400, 40
	var letters []ledger.Letter
	for i := range int64(n) {
		l := letter(i, fmt.Sprint(i))
		l.FirstFailedAt = noon.Add(time.Duration(i) * time.Second)
		l.Cause.Code, l.Cause.Kind = fmt.Sprint("c", i%7), []envelope.Kind{envelope.Data, envelope.Transient}[i%2]
		letters = append(letters, l)
	}
	d.Entered(letters...)
	for _, f := range []ledger.Filter{{}, {Kind: envelope.Data}, {Code: "c3"}, {Path: "a/b", Code: "c3"}, {Partition: new(int32(2))}} {
		job, err := d.CreateJob(t.Context(), ledger.Job{Act: ledger.Retried, Filter: f, Operator: "ann", Reason: "because"})
		if err != nil {
			t.Fatal(err)
		}
		by := ledger.Actor{Name: "ann", Why: "because", Job: job.ID}
		moved, last := int64(0), ""
		for more := true; more; {
			ids, err := d.RetryMatching(t.Context(), f, job.CreatedAt, portion, soon, by)
			if err != nil {
				t.Fatal(err)
			}
			moved, more = moved+int64(len(ids)), len(ids) == portion
			d.lapse() // all of them are free again, but for this job
			reached := d.Text(fmt.Sprint(`SELECT reached::text FROM dead_letter_jobs WHERE job_id = `, job.ID))
			if more && reached <= last {
				t.Fatalf("%+v: it stands at %s after %s", f, reached, last)
			}
			last = reached
		}
		if moved != job.Matched || moved == 0 {
			t.Errorf("%+v: %d of %d were moved", f, moved, job.Matched)
		}
	}
	d.Sums()
}

// A job that is given another filter than its own does not go by where it was.
func TestMatching_PlaceOfTheJobsFilter(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	early, late := letter(1, one), letter(2, two)
	early.Path, late.FirstFailedAt = "early", noon.Add(time.Hour)
	d.Entered(early, late)
	job, err := d.CreateJob(t.Context(), ledger.Job{Act: ledger.Closed, Filter: ledger.Filter{Path: late.Path}, Operator: "ann", Reason: "because"})
	if err != nil {
		t.Fatal(err)
	}
	by := ledger.Actor{Name: "ann", Why: "because", Job: job.ID}
	for _, f := range []ledger.Filter{job.Filter, {}} {
		if n, err := d.ResolveMatching(t.Context(), f, job.CreatedAt, 5, by); n != 1 || err != nil {
			t.Fatalf("%+v: %d, %v", f, n, err)
		}
	}
}

// The result of a job is told for good.
func TestMatching_ResultOutlivesItsLetters(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	d.Entered(letter(1, one), letter(2, two), letter(3, three))
	job, err := d.CreateJob(t.Context(), ledger.Job{Act: ledger.Retried, Operator: "ann", Reason: "because"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.RetryMatching(t.Context(), job.Filter, job.CreatedAt, 5, soon, ledger.Actor{Name: "ann", Why: "because", Job: job.ID}); err != nil {
		t.Fatal(err)
	}
	sent := d.Claimed("r", 5)
	var placed []ledger.Placed
	for i, s := range sent {
		placed = append(placed, ledger.Placed{SendingID: s.ID, Offset: int64(500 + i)})
	}
	d.lapse() // withdrawn where nobody is publishing it, and published after all
	d.Placed("r", placed...)
	if err := d.Stored(t.Context(), []int64{sent[0].ID, sent[1].ID}, []string{"row", "row"}, ann); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		j, err := d.Job(t.Context(), job.ID)
		if err != nil || j.Stored != 2 || j.Dead != 0 || j.Refused != 0 || j.Open() != 1 {
			t.Fatalf("%+v, %v", j, err)
		}
		if _, err := d.Remove(t.Context(), time.Now().Add(time.Hour), 10, ann); err != nil {
			t.Fatal(err)
		}
		if err := d.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	same(t, d.Text(`SELECT string_agg(concat_ws(' ', outcome, n), ', ') FROM dead_letter_job_ends`), "stored 2")
}
