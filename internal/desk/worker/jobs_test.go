package worker

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
)

// inJobs runs a test in a bubble. play starts a goroutine that runs until the test ends.
func inJobs(t *testing.T, do func(t *testing.T, play func(func(context.Context)) (stop func()))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		defer wg.Wait()
		defer cancel()
		do(t, func(f func(context.Context)) func() {
			ctx, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			wg.Go(func() { defer close(done); f(ctx) })
			return func() { cancel(); <-done }
		})
	})
}

// settle lets time pass until every goroutine waits for more of it.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func jobsDesk(b *jobsBook, holder string, probe func() error, change ...func(*JobsConfig)) func(context.Context) {
	cfg := JobsConfig{Holder: holder}
	for _, c := range change {
		c(&cfg)
	}
	j := NewJobs(cfg, b, probeFunc(probe), zerolog.Nop())
	return func(ctx context.Context) { _ = j.Run(ctx) }
}

func until(t *testing.T, b *jobsBook, id int64, state ledger.JobState, within time.Duration) ledger.Job {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		j := b.see(id)
		if j.State == state {
			return j
		}
		if time.Since(begin) > within {
			t.Fatalf("after %v the job is %s: %s", within, j.State, j.Note)
		}
	}
}

func TestJobs_StepsDouble(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(3000)
		id := b.job(ledger.Job{})
		play(jobsDesk(b, "a", well))
		settle(30 * time.Second)
		if n := b.sizes(); !slices.Equal(n, []int{1}) {
			t.Fatalf("sent %v before the first one ended", n)
		}
		b.noted(t, "waiting for the result of the first record; is a consumer running?")
		play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
		j := until(t, b, id, ledger.JobDone, time.Minute)
		if n := b.sizes(); !slices.Equal(n, []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 977}) {
			t.Errorf("sent %v", n)
		}
		if j.Note != "done: sent 3,000 of 3,000, 3,000 stored" {
			t.Errorf("note %q", j.Note)
		}
	})
}

func TestJobs_Window(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(500)
		id := b.job(ledger.Job{})
		first := true
		b.consume(nil)
		play(jobsDesk(b, "a", well, func(c *JobsConfig) { c.Window = 50 }))
		settle(time.Second)
		b.consume(func(*ledger.Sending) (ledger.SendingOutcome, string) { first = false; return ledger.SendingStored, "" })
		settle(time.Minute)
		if j := b.see(id); first || j.Open() != 50 {
			t.Errorf("%d are under way", j.Open())
		}
		b.noted(t, "50 in progress")
		j := until(t, b, id, ledger.JobStopped, 20*time.Minute)
		if want := "no result of 50 records in 15m0s; is a consumer running? sent 51 of 500, 1 stored, 50 in progress"; j.Note != want {
			t.Errorf("note %q", j.Note)
		}
	})
}

func TestJobs_Rate(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.2, 3.3, 95, 300} {
		inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
			n := int(rate * 400)
			b := newJobsBook(n)
			b.job(ledger.Job{Rate: rate})
			var calls atomic.Int64
			b.slow = func() { time.Sleep(time.Duration(calls.Add(1)%7) * 20 * time.Millisecond) }
			play(jobsDesk(b, "a", well, func(c *JobsConfig) { c.Window = 5000 }))
			play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
			settle(20 * time.Second)
			for range 3 {
				before, from := b.see(1).Sent, time.Now()
				settle(2 * time.Minute)
				got := float64(b.see(1).Sent-before) / time.Since(from).Seconds()
				if math.Abs(got-rate)/rate > 0.05 {
					t.Errorf("%v/s, not %v/s", got, rate)
				}
			}
		})
	}
}

func TestJobs_StopsIfTheFirstFailAlike(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(100)
		id := b.job(ledger.Job{})
		play(jobsDesk(b, "a", well))
		stop := play(func(ctx context.Context) { b.consumer(ctx, 70*time.Millisecond, always(ledger.SendingDead, "23514")) })
		j := until(t, b, id, ledger.JobStopped, time.Minute)
		if j.Sent != 5 || j.Note != "the first 5 failed in the same way: 23514; nothing more was sent" {
			t.Errorf("sent %d, note %q", j.Sent, j.Note)
		}
		stop()
		b.mu.Lock()
		b.jobs[id].State = ledger.JobWaiting // resumed after a repair
		b.mu.Unlock()
		play(func(ctx context.Context) { b.consumer(ctx, 70*time.Millisecond, always(ledger.SendingStored, "")) })
		j = until(t, b, id, ledger.JobDone, time.Minute)
		if j.Stored != 95 || j.Dead != 5 || len(b.twice()) > 0 {
			t.Errorf("stored %d, dead %d, twice %v", j.Stored, j.Dead, b.twice())
		}
		if n := b.sizes(); !slices.Equal(n[:4], []int{1, 4, 1, 2}) {
			t.Errorf("it did not start again with one: %v", n)
		}
	})
}

func TestJobs_DifferentFailuresDoNotStop(t *testing.T) {
	t.Parallel()
	for _, other := range []func(n int) (ledger.SendingOutcome, string){
		func(n int) (ledger.SendingOutcome, string) {
			return ledger.SendingDead, []string{"23514", "22001"}[n%2]
		},
		func(n int) (ledger.SendingOutcome, string) {
			if n == 5 {
				return ledger.SendingStored, ""
			}
			return ledger.SendingDead, "23514"
		},
	} {
		inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
			b := newJobsBook(40)
			id := b.job(ledger.Job{})
			play(jobsDesk(b, "a", well))
			n := 0
			play(func(ctx context.Context) {
				b.consumer(ctx, 70*time.Millisecond, func(*ledger.Sending) (ledger.SendingOutcome, string) { n++; return other(n) })
			})
			if j := until(t, b, id, ledger.JobDone, time.Minute); j.Sent != 40 {
				t.Errorf("sent %d: %s", j.Sent, j.Note)
			}
		})
	}
}

func TestJobs_StopAndResume(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(1000)
		id := b.job(ledger.Job{Rate: 10})
		play(jobsDesk(b, "a", well))
		play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
		settle(20 * time.Second)
		b.mu.Lock()
		b.jobs[id].State = ledger.JobStopped
		sent, keeps := b.jobs[id].Sent, 0
		b.fails = func(act string) error {
			if act == "keep" {
				keeps++
			}
			return nil
		}
		b.mu.Unlock()
		settle(time.Minute)
		b.mu.Lock()
		if keeps != 1 {
			t.Errorf("the job was not left at once, but after %d steps", keeps)
		}
		b.mu.Unlock()
		if j := b.see(id); j.Sent != sent || sent < 100 {
			t.Fatalf("sent %d at the stop, %d after", sent, j.Sent)
		}
		b.mu.Lock()
		b.jobs[id].State = ledger.JobWaiting
		b.mu.Unlock()
		if j := until(t, b, id, ledger.JobDone, 5*time.Minute); j.Stored != 1000 || len(b.twice()) > 0 {
			t.Errorf("stored %d, twice %v", j.Stored, b.twice())
		}
	})
}

func TestJobs_Limit(t *testing.T) {
	t.Parallel()
	for _, act := range []ledger.Act{ledger.Retried, ledger.Closed} {
		inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
			b := newJobsBook(2000)
			id := b.job(ledger.Job{Act: act, Limit: 777})
			play(jobsDesk(b, "a", well))
			play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
			if j := until(t, b, id, ledger.JobDone, time.Minute); j.Sent != 777 || !strings.Contains(j.Note, "777 of 777") {
				t.Errorf("sent %d: %s", j.Sent, j.Note)
			}
		})
	}
}

func TestJobs_ResolveInPortions(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(1200)
		id := b.job(ledger.Job{Act: ledger.Closed})
		play(jobsDesk(b, "a", well))
		if j := until(t, b, id, ledger.JobDone, 2*time.Second); j.Note != "done: resolved 1,200 of 1,200" {
			t.Errorf("note %q", j.Note)
		}
		if n := b.sizes(); !slices.Equal(n, []int{500, 500, 200}) {
			t.Errorf("moved %v", n)
		}
		if by := b.moves[0].by; by != (ledger.Actor{Name: "ann", Why: "the migration is mended", Job: id}) {
			t.Errorf("by %+v", by)
		}
	})
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(1200)
		id := b.job(ledger.Job{Act: ledger.Closed, Rate: 10})
		play(jobsDesk(b, "a", well))
		settle(time.Minute)
		if n := b.see(id).Sent; n < 570 || n > 630 {
			t.Errorf("%d in a minute", n)
		}
		until(t, b, id, ledger.JobDone, 2*time.Minute)
	})
}

func TestJobs_ThreeFailedProbesStop(t *testing.T) {
	t.Parallel()
	refused := errclass.As(errors.New("no"), errclass.CodeConfig)
	for _, test := range []struct {
		failing []int // of all probes
		want    ledger.JobState
	}{{[]int{4, 5, 7, 8, 10}, ledger.JobDone}, {[]int{4, 5, 6}, ledger.JobStopped}} {
		inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
			b := newJobsBook(100)
			id := b.job(ledger.Job{})
			probes := 0
			play(jobsDesk(b, "a", func() error {
				if probes++; slices.Contains(test.failing, probes) {
					return refused
				}
				return nil
			}))
			play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
			j := until(t, b, id, test.want, time.Minute)
			if test.want == ledger.JobStopped && (j.Sent != 7 || j.Note != "the table refused a known-good row 3 times in a row: config; nothing more was sent") {
				t.Errorf("sent %d, note %q", j.Sent, j.Note)
			}
		})
	}
}

func TestJobs_LedgerFailsStops(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(1000)
		id := b.job(ledger.Job{Rate: 5})
		play(jobsDesk(b, "a", well))
		play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
		settle(10 * time.Second)
		refused := errclass.As(errors.New("refused"), errclass.CodeNetwork)
		b.mu.Lock()
		b.fails = func(act string) error {
			if act == "retry" {
				return refused
			}
			return nil
		}
		b.mu.Unlock()
		settle(25 * time.Second)
		if j := b.see(id); j.State != ledger.JobRunning {
			t.Errorf("after 25 s it is %s: %s", j.State, j.Note)
		}
		if j := until(t, b, id, ledger.JobStopped, 10*time.Second); !strings.HasPrefix(j.Note, "the ledger failed ") || !strings.HasSuffix(j.Note, " times in a row, for 30s: network; nothing more was done") {
			t.Errorf("note %q", j.Note)
		}
	})
}

// A database that is away stops no job, however long.
func TestJobs_LedgerAwayStopsNothing(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(200)
		id := b.job(ledger.Job{Rate: 5})
		play(jobsDesk(b, "a", well))
		play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
		for _, away := range []time.Duration{20 * time.Second, 40 * time.Second, 20 * time.Minute} {
			settle(5 * time.Second)
			b.mu.Lock()
			b.fails = func(string) error { return errclass.As(errors.New("away"), errclass.CodeNetwork) }
			b.mu.Unlock()
			settle(away)
			b.mu.Lock()
			b.fails = nil
			b.mu.Unlock()
		}
		until(t, b, id, ledger.JobDone, 2*time.Minute)
	})
}

func TestJobs_OneFailureSkipsNothing(t *testing.T) {
	t.Parallel()
	for _, act := range []ledger.Act{ledger.Retried, ledger.Closed} {
		inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
			b := newJobsBook(20)
			id := b.job(ledger.Job{Act: act, Rate: 5})
			calls := 0
			b.fails = func(what string) error { // every second portion, which comes again at the next step
				if what != "retry" && what != "resolve" {
					return nil
				}
				if calls++; calls%2 == 0 {
					return errors.New("away")
				}
				return nil
			}
			play(jobsDesk(b, "a", well))
			play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
			if j := until(t, b, id, ledger.JobDone, time.Minute); j.Sent != 20 || calls < 3 {
				t.Errorf("it moved %d of 20 in %d portions: %s", j.Sent, calls, j.Note)
			}
		})
	}
}

func TestJobs_StopsWithoutAConsumer(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(10)
		id := b.job(ledger.Job{})
		play(jobsDesk(b, "a", well, func(c *JobsConfig) { c.First = time.Minute }))
		j := until(t, b, id, ledger.JobStopped, 62*time.Second)
		if want := "no result of 1 record in 1m0s; is a consumer running? sent 1 of 10, 1 in progress"; j.Note != want {
			t.Errorf("note %q", j.Note)
		}
	})
}

func TestJobs_DoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(10)
		id := b.job(ledger.Job{})
		play(jobsDesk(b, "a", well, func(c *JobsConfig) { c.LetterLease = 2 * time.Minute }))
		play(func(ctx context.Context) {
			b.consumer(ctx, 100*time.Millisecond, func(s *ledger.Sending) (ledger.SendingOutcome, string) {
				if s.ID%5 == 0 {
					return "", ""
				}
				return ledger.SendingStored, ""
			})
		})
		j := until(t, b, id, ledger.JobDone, 3*time.Minute)
		if !strings.HasPrefix(j.Note, "done: sent 10 of 10, 8 stored, 2 in progress; no result of 2 records in 2m0s") {
			t.Errorf("note %q", j.Note)
		}
	})
}

func TestJobs_WaitsWhileRetriesEnd(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(12)
		id := b.job(ledger.Job{})
		play(jobsDesk(b, "a", well, func(c *JobsConfig) { c.LetterLease = time.Minute }))
		play(func(ctx context.Context) {
			for pause(ctx, 45*time.Second) {
				n := 0
				b.consume(func(*ledger.Sending) (ledger.SendingOutcome, string) {
					if n++; n > 1 {
						return "", ""
					}
					return ledger.SendingStored, ""
				})
			}
		})
		if j := until(t, b, id, ledger.JobDone, 20*time.Minute); j.Stored != 12 {
			t.Errorf("note %q", j.Note)
		}
	})
}

func TestJobs_StoppingDeskHandsOver(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(400)
		id := b.job(ledger.Job{Rate: 10})
		stop := play(jobsDesk(b, "a", well, func(c *JobsConfig) { c.Lease = time.Hour }))
		play(func(ctx context.Context) { b.consumer(ctx, 100*time.Millisecond, always(ledger.SendingStored, "")) })
		settle(10 * time.Second)
		stop()
		play(jobsDesk(b, "b", well))
		if j := until(t, b, id, ledger.JobDone, time.Minute); !strings.HasPrefix(j.Owner, "b/") || j.Stored != 400 || len(b.twice()) > 0 {
			t.Errorf("%s stored %d, twice %v", j.Owner, j.Stored, b.twice())
		}
	})
}

// Desks stop at any time, are paused beyond their lease, and meet an unavailable ledger. People stop and resume jobs.
// No letter is retried twice by one job, and in the end all are.
func TestJobs_NothingIsSentTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(r, "letters")
		outcomes := rapid.SliceOfN(rapid.IntRange(0, 9), n, n).Draw(r, "outcomes")
		evils := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 12).Draw(r, "evils")
		waits := rapid.SliceOfN(rapid.IntRange(1, 40000), len(evils), len(evils)).Draw(r, "waits")
		perSecond := rapid.SampledFrom([]float64{0, 1, 7}).Draw(r, "rate")
		inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
			b := newJobsBook(n)
			id := b.job(ledger.Job{Rate: perSecond})
			desks := map[string]func(){}
			start := func(name string) { desks[name] = play(jobsDesk(b, name, well)) }
			start("a")
			start("b")
			play(func(ctx context.Context) {
				b.consumer(ctx, 300*time.Millisecond, func(s *ledger.Sending) (ledger.SendingOutcome, string) {
					if outcomes[(s.ID-1)%int64(n)] == 0 {
						return ledger.SendingDead, "23514"
					}
					return ledger.SendingStored, ""
				})
			})
			for i, evil := range evils {
				settle(time.Duration(waits[i]) * time.Millisecond)
				b.mu.Lock()
				switch j := b.jobs[id]; evil {
				case 0, 1: // one desk is exchanged for another
					b.mu.Unlock()
					name := []string{"a", "b"}[evil]
					desks[name]()
					start(name)
					b.mu.Lock()
				case 2: // a desk was paused, and its lease ended meanwhile
					j.until = b.now()
				case 3:
					if j.State == ledger.JobRunning || j.State == ledger.JobWaiting {
						j.State = ledger.JobStopped
					}
				case 4:
					b.fails = func(act string) error {
						if act == "retry" || act == "keep" {
							return errors.New("away")
						}
						return nil
					}
				case 5:
					b.fails = nil
				}
				b.mu.Unlock()
			}
			b.mu.Lock()
			b.fails = nil
			b.mu.Unlock()
			var j ledger.Job
			for range 400 {
				settle(time.Second)
				b.mu.Lock()
				if s := &b.jobs[id].State; *s == ledger.JobStopped {
					*s = ledger.JobWaiting
				}
				b.mu.Unlock()
				if j = b.see(id); j.State == ledger.JobDone {
					break
				}
			}
			if j.State != ledger.JobDone || j.Sent != int64(n) || ended(j) != int64(n) || len(b.twice()) > 0 {
				r.Errorf("%s, sent %d of %d, ended %d, twice %v: %s", j.State, j.Sent, n, ended(j), b.twice(), j.Note)
			}
		})
	})
}
