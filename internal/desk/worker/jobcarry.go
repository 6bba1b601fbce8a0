package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
)

const (
	// jobFailures is how often in a row the probe, or the ledger, may fail before a job stops.
	jobFailures = 3
	// jobPatience is how long the steps of a job have to fail before it stops.
	jobPatience = 30 * time.Second
	// resolvePortion limits the letters that are resolved in one transaction.
	resolvePortion = 500
	// handOverTime limits the time of handing a job over when the program stops.
	handOverTime = 5 * time.Second
)

// jobRun is a job in hand. Its progress is in the ledger, because another desk may continue it at any step.
type jobRun struct {
	*Jobs
	job       ledger.Job // as last read
	base      ledger.Job // as it was taken
	ramp      *ramp
	speed     speed
	perSecond float64
	heard     time.Time // a letter was last moved, or a retry ended, then
	waits     string    // the reason for waiting, or empty
	unprobed  int       // failed probes in a row
	failed    int       // steps in a row that failed at the ledger
	failing   time.Time // the first of them
	judged    bool      // the first retries did not all fail alike
	exhausted bool      // nothing matches any more
}

// ending is the end of a job.
type ending struct {
	state ledger.JobState
	note  string
}

// errProbe says that the table does not take a known-good row.
type errProbe struct{ err error }

func (e *errProbe) Error() string { return "probe the table: " + e.err.Error() }
func (e *errProbe) Unwrap() error { return e.err }

// errLease says that the ledger did not renew the lease. It may be away, and without its lease the job does nothing.
type errLease struct{ err error }

func (e *errLease) Error() string { return e.err.Error() }
func (e *errLease) Unwrap() error { return e.err }

// carry carries out a job until it ends, has another owner, or ctx ends.
func (j *Jobs) carry(ctx context.Context, job ledger.Job) {
	first := 1
	if job.Act == ledger.Closed {
		first = resolvePortion
	}
	c := &jobRun{Jobs: j, job: job, base: job, heard: time.Now(), ramp: newRamp(job.Rate, j.cfg.Step, first, max(j.cfg.Window, resolvePortion))}
	j.log.Info().Int64("job", job.ID).Str("act", string(job.Act)).Str("operator", job.Operator).Msg("job taken")
	for {
		begin := time.Now()
		end, more, err := c.step(ctx)
		switch {
		case errors.Is(err, ledger.ErrLost):
			j.log.Info().Int64("job", job.ID).Msg("job lease lost")
			return
		case ctx.Err() != nil && end == nil:
			c.handOver(ctx)
			return
		case err != nil:
			end = c.countFailure(err)
		default:
			c.failed = 0
		}
		if end != nil {
			c.end(ctx, *end)
			return
		}
		if more {
			continue
		}
		pause(ctx, max(0, j.cfg.Step-time.Since(begin)))
	}
}

// step does one step. more says that the next is due at once.
func (c *jobRun) step(ctx context.Context) (end *ending, more bool, err error) {
	if err := c.keep(ctx); err != nil {
		return nil, false, err
	}
	// This step ends before the lease does.
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Lease/2)
	defer cancel()
	if c.job.Act == ledger.Closed {
		return c.resolve(ctx)
	}
	end, err = c.retry(ctx)
	return end, false, err
}

// keep renews the lease and reads the job.
func (c *jobRun) keep(ctx context.Context) error {
	job, err := c.book.KeepJob(ctx, c.job.ID, c.cfg.Holder, c.note(), c.cfg.Lease)
	if err != nil {
		return &errLease{fmt.Errorf("keep job %d: %w", c.job.ID, err)}
	}
	if job.State != ledger.JobRunning {
		return fmt.Errorf("keep job %d, which is %s: %w", c.job.ID, job.State, ledger.ErrLost)
	}
	now := time.Now()
	if job.Sent != c.job.Sent || ended(job) != ended(c.job) {
		c.heard = now
	}
	c.job = job
	c.perSecond = c.speed.note(now, job.Sent)
	return nil
}

// countFailure counts failures, and stops the job after too many. While the ledger is away nothing counts: once it is
// back, this desk continues the job, or another does whose turn comes first.
func (c *jobRun) countFailure(err error) *ending {
	code := errclass.Classify(err).Code
	c.log.Warn().Err(err).Int64("job", c.job.ID).Msg("job step failed")
	c.waits = "the last step failed: " + code + "; retrying"
	if _, ok := errors.AsType[*errProbe](err); ok {
		if c.unprobed++; c.unprobed >= jobFailures {
			return &ending{ledger.JobStopped, fmt.Sprintf("the table refused a known-good row %d times in a row: %s; nothing more was sent", jobFailures, code)}
		}
		return nil
	}
	if _, ok := errors.AsType[*errLease](err); ok {
		c.failed, c.heard = 0, time.Now() // nobody can have told
		return nil
	}
	if c.failed++; c.failed == 1 {
		c.failing = time.Now()
	}
	if c.failed >= jobFailures && time.Since(c.failing) >= jobPatience {
		return &ending{ledger.JobStopped, fmt.Sprintf("the ledger failed %d times in a row, for %v: %s; nothing more was done", c.failed, jobPatience, code)}
	}
	return nil
}

// end notes the end of a job, and retries until the ledger takes it or the job has another owner.
func (c *jobRun) end(ctx context.Context, e ending) {
	for {
		err := c.book.EndJob(ctx, c.job.ID, c.cfg.Holder, e.state, e.note)
		switch {
		case err == nil:
			c.log.Info().Int64("job", c.job.ID).Str("state", string(e.state)).Str("note", e.note).Msg("job ended")
			return
		case errors.Is(err, ledger.ErrLost):
			c.log.Info().Int64("job", c.job.ID).Msg("job lease lost")
			return
		}
		c.log.Warn().Err(err).Int64("job", c.job.ID).Msg("job end not recorded")
		if !pause(ctx, c.cfg.Step) {
			c.handOver(ctx)
			return
		}
	}
}

// handOver ends the lease, so that another desk takes the job at once.
func (c *jobRun) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTime)
	defer cancel()
	c.waits = "its desk stopped; another desk continues it"
	if _, err := c.book.KeepJob(ctx, c.job.ID, c.cfg.Holder, c.note(), time.Millisecond); err != nil && !errors.Is(err, ledger.ErrLost) {
		c.log.Warn().Err(err).Int64("job", c.job.ID).Msg("job not handed over")
	}
}

// resolve resolves one portion.
func (c *jobRun) resolve(ctx context.Context) (end *ending, more bool, err error) {
	most := c.left(resolvePortion)
	n := c.ramp.allows(most)
	if most > 0 && n == 0 {
		return nil, false, nil
	}
	moved := 0
	if n > 0 {
		if moved, err = c.book.ResolveMatching(ctx, c.job.Filter, c.job.CreatedAt, n, c.actor()); err != nil {
			return nil, false, fmt.Errorf("resolve letters: %w", err)
		}
	}
	c.waits = ""
	c.job.Sent += int64(moved)
	c.ramp.sent(moved)
	if moved < n || c.left(1) == 0 {
		return &ending{ledger.JobDone, "done: " + c.progress()}, false, nil
	}
	return nil, true, nil
}

func (c *jobRun) actor() ledger.Actor {
	return ledger.Actor{Name: c.job.Operator, Why: c.job.Reason, Job: c.job.ID}
}

// left returns how many letters the job's limit still allows, at most n.
func (c *jobRun) left(n int) int {
	if c.job.Limit <= 0 {
		return n
	}
	return int(max(0, min(int64(n), c.job.Limit-c.job.Sent)))
}

// ended returns how many retries of a job have ended.
func ended(j ledger.Job) int64 { return j.Stored + j.Dead + j.Refused }
