package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
)

// JobBook is the part of the ledger that jobs need. Any [ledger.Book] is one.
type JobBook interface {
	Job(ctx context.Context, id int64) (ledger.Job, error)
	TakeJob(ctx context.Context, holder string, lease time.Duration) (ledger.Job, error)
	KeepJob(ctx context.Context, id int64, holder, note string, lease time.Duration) (ledger.Job, error)
	EndJob(ctx context.Context, id int64, holder string, state ledger.JobState, note string) error
	FirstEnds(ctx context.Context, id int64, n int) ([]ledger.Sending, error)
	RetryMatching(ctx context.Context, filter ledger.Filter, before time.Time, n int, lease time.Duration, by ledger.Actor) ([]int64, error)
	ResolveMatching(ctx context.Context, filter ledger.Filter, before time.Time, n int, by ledger.Actor) (int, error)
}

// JobsConfig says how jobs are carried out.
type JobsConfig struct {
	Holder      string        // a name that no other desk has; each job in hand has it with a number
	Lease       time.Duration // a job without a step for so long goes to another desk; default 30 s
	Step        time.Duration // pause between two steps; default 1 s
	LetterLease time.Duration // how long a retry may go without news, as in the whole desk; default 15 min
	First       time.Duration // without news of any retry for so long, a job stops; default LetterLease
	Alike       int           // a job stops if this many of its first retries are dead for one code; default 5
	Window      int           // limit of a job's running retries; default 1000
	AtOnce      int           // limit of jobs in hand; default 4
}

// Jobs carries out jobs, a few at a time, so that one that waits for a consumer does not delay the others.
type Jobs struct {
	cfg   JobsConfig
	book  JobBook
	table Prober
	log   zerolog.Logger
}

// NewJobs makes the worker for jobs.
func NewJobs(cfg JobsConfig, book JobBook, table Prober, log zerolog.Logger) *Jobs {
	defaultTo(&cfg.Lease, 30*time.Second)
	defaultTo(&cfg.Step, time.Second)
	defaultTo(&cfg.LetterLease, 15*time.Minute)
	defaultTo(&cfg.First, cfg.LetterLease)
	defaultTo(&cfg.Alike, 5)
	defaultTo(&cfg.Window, 1000)
	defaultTo(&cfg.AtOnce, 4)
	return &Jobs{cfg: cfg, book: book, table: table, log: log}
}

func defaultTo[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Run takes jobs and carries them out until ctx ends, and returns nil then. It hands over the jobs in hand.
func (j *Jobs) Run(ctx context.Context) error {
	// Each job needs a name of its own, because a lease belongs to a name. Otherwise two jobs of one desk could keep
	// each other's lease, and a goroutine could take over an expired job beside another.
	free := make(chan string, j.cfg.AtOnce)
	for n := range j.cfg.AtOnce {
		free <- fmt.Sprintf("%s/%d", j.cfg.Holder, n+1)
	}
	var jobRun sync.WaitGroup
	defer jobRun.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case holder := <-free:
			if !j.take(ctx, holder, func(job ledger.Job) {
				jobRun.Go(func() {
					j.as(holder).carry(ctx, job)
					free <- holder
				})
			}) {
				free <- holder
				pause(ctx, j.cfg.Step)
			}
		}
	}
}

// take takes a job for holder, if there is one.
func (j *Jobs) take(ctx context.Context, holder string, carry func(ledger.Job)) bool {
	job, err := j.book.TakeJob(ctx, holder, j.cfg.Lease)
	if err == nil {
		carry(job)
		return true
	}
	if !errors.Is(err, ledger.ErrNotFound) && ctx.Err() == nil {
		j.log.Warn().Err(err).Msg("job lookup failed")
	}
	return false
}

// as returns j with another holder.
func (j *Jobs) as(holder string) *Jobs {
	other := *j
	other.cfg.Holder = holder
	return &other
}

// pause waits. It reports whether ctx is still valid.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
