package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

func TestJobs_WaitingJobDelaysNoOther(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(10)
		waits := b.job(ledger.Job{Limit: 1}) // no consumer runs: it waits for a quarter of an hour
		play(jobsDesk(b, "a", well))
		settle(5 * time.Second)
		other := b.job(ledger.Job{Act: ledger.Closed})
		until(t, b, other, ledger.JobDone, 10*time.Second)
		if j := b.see(waits); j.State != ledger.JobRunning || j.Sent != 1 {
			t.Errorf("the one that waits is %s and sent %d", j.State, j.Sent)
		}
		if ids := b.twice(); len(ids) > 0 {
			t.Errorf("moved twice: %v", ids)
		}
	})
}

func TestJobs_SeveralAtOnce(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(100)
		var ids []int64
		for range 6 {
			ids = append(ids, b.job(ledger.Job{Limit: 1}))
		}
		stop := play(jobsDesk(b, "a", well))
		settle(30 * time.Second)
		var owners []string
		waiting := 0
		for _, id := range ids {
			if j := b.see(id); j.State == ledger.JobRunning {
				owners = append(owners, j.Owner)
			} else if j.State == ledger.JobWaiting {
				waiting++
			}
		}
		slices.Sort(owners)
		if !slices.Equal(owners, []string{"a/1", "a/2", "a/3", "a/4"}) || waiting != 2 {
			t.Fatalf("owners %v, %d wait", owners, waiting)
		}
		stop() // all four are handed over
		play(jobsDesk(b, "b", well))
		play(func(ctx context.Context) {
			b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, ""))
		})
		for _, id := range ids {
			until(t, b, id, ledger.JobDone, time.Minute)
		}
		if ids := b.twice(); len(ids) > 0 {
			t.Errorf("moved twice: %v", ids)
		}
	})
}
