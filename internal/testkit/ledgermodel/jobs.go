package ledgermodel

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"docket/internal/desk/ledger"
)

// job is a job with its lease.
type job struct {
	ledger.Job
	leaseUntil time.Time
	removed    map[ledger.SendingOutcome]int64 // retries that left the ledger with their letters, by outcome
}

// RetryMatching implements [ledger.Decider]. It supports Kind, States, AttemptsBelow and Free of the filter.
func (b *Book) RetryMatching(ctx context.Context, f ledger.Filter, before time.Time, n int, lease time.Duration, by ledger.Actor) (ids []int64, err error) {
	err = b.matching(ctx, f, before, n, by, func(free []*ledger.Entry, now time.Time) { ids = b.retry(free, lease, by, now) })
	return ids, err
}

// ResolveMatching implements [ledger.Decider], with the same limits.
func (b *Book) ResolveMatching(ctx context.Context, f ledger.Filter, before time.Time, n int, by ledger.Actor) (moved int, err error) {
	err = b.matching(ctx, f, before, n, by, func(free []*ledger.Entry, now time.Time) {
		b.resolve(free, by, now)
		moved = len(free)
	})
	return moved, err
}

// matching moves the oldest movable letters that match a filter and that the job of by did not touch, and counts them
// for it.
func (b *Book) matching(ctx context.Context, f ledger.Filter, before time.Time, n int, by ledger.Actor, move func([]*ledger.Entry, time.Time)) error {
	switch {
	case by.Name == "":
		return ledger.ErrNobody
	case by.Why == "":
		return ledger.ErrNoReason
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	var free []*ledger.Entry
	for _, e := range b.letters {
		if chosen(f, e) && !(f.Free && b.governed(e, now)) && e.ChangedAt.Before(before) && (by.Job == 0 || e.Job != by.Job) {
			free = append(free, e)
		}
	}
	slices.SortFunc(free, func(a, b *ledger.Entry) int {
		return cmp.Or(a.FirstFailedAt.Compare(b.FirstFailedAt), strings.Compare(a.ID, b.ID))
	})
	free = free[:min(max(n, 0), len(free))]
	move(free, now)
	if j := b.jobs[by.Job]; j != nil {
		j.Sent += int64(len(free))
	}
	return nil
}

// chosen reports whether a letter may be moved and matches a filter.
func chosen(f ledger.Filter, e *ledger.Entry) bool {
	return e.State.Decidable() && (len(f.States) == 0 || slices.Contains(f.States, e.State)) &&
		(f.Kind == "" || f.Kind == e.Cause.Kind) && (f.AttemptsBelow == 0 || e.Attempts < f.AttemptsBelow)
}

// CreateJob implements [ledger.Jobs]. It accepts every job.
func (b *Book) CreateJob(ctx context.Context, j ledger.Job) (ledger.Job, error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return ledger.Job{}, err
	}
	defer end()
	j.ID, j.State, j.CreatedAt = int64(len(b.jobs)+1), ledger.JobWaiting, now
	if b.fourEyes && j.Act == ledger.Closed {
		j.State, j.Note = ledger.JobProposed, "it waits for a second person"
	}
	for _, e := range b.letters {
		if chosen(j.Filter, e) {
			j.Matched++
		}
	}
	b.jobs[j.ID] = &job{Job: j, removed: map[ledger.SendingOutcome]int64{}}
	return b.jobs[j.ID].Job, nil
}

// present returns a job with its present numbers.
func (b *Book) present(j *job) ledger.Job {
	ends := maps.Clone(j.removed)
	for _, s := range b.sendings {
		if s.Job == j.ID {
			ends[s.Outcome]++
		}
	}
	told := j.Job
	told.Stored, told.Dead = ends[ledger.SendingStored], ends[ledger.SendingDead]
	told.Refused = ends[ledger.SendingRefused] + ends[ledger.SendingWithdrawn]
	return told
}

// turn changes a job if is returns true; else it returns otherwise.
func (b *Book) turn(ctx context.Context, id int64, is func(*job) bool, change func(*job, time.Time), otherwise func(*job) error) (ledger.Job, error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return ledger.Job{}, err
	}
	defer end()
	j := b.jobs[id]
	if j == nil || !is(j) {
		if err := otherwise(j); err != nil {
			return ledger.Job{}, err
		}
		return b.present(j), nil
	}
	change(j, now)
	return b.present(j), nil
}

// thatIsThere returns an error if there is no job.
func thatIsThere(j *job) error {
	if j == nil {
		return ledger.ErrNotFound
	}
	return nil
}

func lost(*job) error { return ledger.ErrLost }

// free ends a job's lease.
func (j *job) free() { j.Owner, j.leaseUntil = "", time.Time{} }

// Job implements [ledger.Jobs].
func (b *Book) Job(ctx context.Context, id int64) (ledger.Job, error) {
	return b.turn(ctx, id, func(*job) bool { return false }, nil, thatIsThere)
}

// ListJobs implements [ledger.Jobs].
func (b *Book) ListJobs(ctx context.Context, before int64, n int) (newest []ledger.Job, err error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	first := int64(len(b.jobs))
	if before > 0 {
		first = min(first, before-1)
	}
	for id := first; id > 0 && len(newest) < n; id-- {
		newest = append(newest, b.present(b.jobs[id]))
	}
	return newest, nil
}

// StopJob implements [ledger.Jobs].
func (b *Book) StopJob(ctx context.Context, id int64, why string, by ledger.Actor) (ledger.Job, error) {
	return b.turn(ctx, id, func(j *job) bool {
		return j.State == ledger.JobProposed || j.State == ledger.JobWaiting || j.State == ledger.JobRunning
	}, func(j *job, now time.Time) {
		j.State, j.StoppedBy, j.Note, j.EndedAt = ledger.JobStopped, by.Name, why, now
		j.free()
	}, thatIsThere)
}

// ApproveJob implements [ledger.Cases]. It goes by names alone.
func (b *Book) ApproveJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	return b.turn(ctx, id, func(j *job) bool { return j.State == ledger.JobProposed && !ledger.SamePerson(j.Operator, by.Name) }, func(j *job, _ time.Time) {
		j.State, j.ApprovedBy, j.Note = ledger.JobWaiting, by.Name, ""
	}, func(j *job) error {
		if j == nil {
			return ledger.ErrNotFound
		}
		because := ledger.BecauseEnded
		if j.State == ledger.JobProposed {
			because = ledger.BecauseName
		}
		return &ledger.ProposalError{ID: id, Because: because, Of: "job"}
	})
}

// ResumeJob implements [ledger.Jobs].
func (b *Book) ResumeJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	return b.turn(ctx, id, func(j *job) bool { return j.State == ledger.JobStopped }, func(j *job, _ time.Time) {
		j.State, j.StoppedBy, j.Note, j.EndedAt = ledger.JobWaiting, "", "resumed by "+by.Name, time.Time{}
		if b.fourEyes && j.Act == ledger.Closed {
			j.State = ledger.JobProposed
		}
		j.Reason += "; " + j.Note
		if by.Why != "" {
			j.Reason += ": " + by.Why
		}
		j.free()
	}, thatIsThere)
}

// TakeJob implements [ledger.Jobs].
func (b *Book) TakeJob(ctx context.Context, holder string, lease time.Duration) (ledger.Job, error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return ledger.Job{}, err
	}
	defer end()
	for id := int64(1); id <= int64(len(b.jobs)); id++ {
		j := b.jobs[id]
		if j.State != ledger.JobWaiting && (j.State != ledger.JobRunning || !j.leaseUntil.Before(now)) {
			continue
		}
		j.State, j.Owner, j.leaseUntil = ledger.JobRunning, holder, now.Add(lease)
		if j.StartedAt.IsZero() {
			j.StartedAt = now
		}
		return b.present(j), nil
	}
	return ledger.Job{}, ledger.ErrNotFound
}

// KeepJob implements [ledger.Jobs].
func (b *Book) KeepJob(ctx context.Context, id int64, holder, note string, lease time.Duration) (ledger.Job, error) {
	return b.turn(ctx, id, heldBy(holder), func(j *job, now time.Time) { j.Note, j.leaseUntil = note, now.Add(lease) }, lost)
}

func heldBy(holder string) func(*job) bool {
	return func(j *job) bool { return j.State == ledger.JobRunning && j.Owner == holder }
}

// EndJob implements [ledger.Jobs].
func (b *Book) EndJob(ctx context.Context, id int64, holder string, state ledger.JobState, note string) error {
	_, err := b.turn(ctx, id, heldBy(holder), func(j *job, now time.Time) {
		j.State, j.Note, j.EndedAt = state, note, now
		if state == ledger.JobStopped {
			j.StoppedBy = holder
		}
		j.free()
	}, lost)
	return err
}

// FirstEnds implements [ledger.Jobs].
func (b *Book) FirstEnds(ctx context.Context, id int64, n int) (ends []ledger.Sending, err error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for _, s := range b.all() {
		if s.Job == id && !s.EndedAt.IsZero() {
			ends = append(ends, s.Sending)
		}
	}
	slices.SortStableFunc(ends, func(a, b ledger.Sending) int { return a.EndedAt.Compare(b.EndedAt) })
	return ends[:min(max(n, 0), len(ends))], nil
}
