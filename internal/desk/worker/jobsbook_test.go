package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// jobsBook is a ledger in memory for jobs and the schedule. Its clock is the bubble's, ahead of the desks' by skew.
type jobsBook struct {
	mu       sync.Mutex
	skew     time.Duration
	letters  []*jobsLetter
	jobs     map[int64]*heldJob
	sendings []*ledger.Sending
	open     []*ledger.Sending
	byID     map[string]*jobsLetter
	moves    []moved
	notes    []string
	fails    func(act string) error
	slow     func()
	duty     struct {
		holder      string
		until, done time.Time
	}
	remembered time.Time
}

type jobsLetter struct {
	ledger.Entry
}

type heldJob struct {
	ledger.Job
	until time.Time
}

// moved are the letters that one call moved.
type moved struct {
	at time.Time
	n  int
	by ledger.Actor
}

func newJobsBook(n int) *jobsBook {
	b := &jobsBook{jobs: map[int64]*heldJob{}, byID: map[string]*jobsLetter{}}
	for i := range n {
		b.add(fmt.Sprintf("%064d", i), ledger.Pending, envelope.Transient)
	}
	return b
}

func (b *jobsBook) add(id string, state ledger.State, kind envelope.Kind) {
	l := &jobsLetter{ledger.Entry{Letter: ledger.Letter{ID: id}, State: state, ChangedAt: b.now()}}
	l.Cause.Kind = kind
	b.letters, b.byID[id] = append(b.letters, l), l
}

func (b *jobsBook) now() time.Time { return time.Now().Add(b.skew) }

func (b *jobsBook) enter(ctx context.Context, act string) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.slow != nil {
		b.slow() // before the lock: nobody can wait for a mutex while time goes by
	}
	b.mu.Lock()
	if b.fails != nil {
		if err := b.fails(act); err != nil {
			b.mu.Unlock()
			return nil, err
		}
	}
	return b.mu.Unlock, nil
}

// job adds a job.
func (b *jobsBook) job(j ledger.Job) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.ID, j.State, j.CreatedAt = int64(len(b.jobs)+1), ledger.JobWaiting, b.now().Add(time.Nanosecond)
	j.Operator, j.Reason = "ann", "the migration is mended"
	if j.Act == "" {
		j.Act = ledger.Retried
	}
	j.Matched = int64(len(b.letters))
	b.jobs[j.ID] = &heldJob{Job: j}
	return j.ID
}

func (b *jobsBook) stands(j *heldJob) ledger.Job {
	now := j.Job
	for _, s := range b.sendings {
		if s.Job != j.ID {
			continue
		}
		switch s.Outcome {
		case ledger.SendingStored:
			now.Stored++
		case ledger.SendingDead:
			now.Dead++
		case ledger.SendingRefused:
			now.Refused++
		}
	}
	return now
}

func (b *jobsBook) Job(ctx context.Context, id int64) (ledger.Job, error) {
	leave, err := b.enter(ctx, "job")
	if err != nil {
		return ledger.Job{}, err
	}
	defer leave()
	return b.stands(b.jobs[id]), nil
}

func (b *jobsBook) TakeJob(ctx context.Context, holder string, lease time.Duration) (ledger.Job, error) {
	leave, err := b.enter(ctx, "take")
	if err != nil {
		return ledger.Job{}, err
	}
	defer leave()
	for id := int64(1); id <= int64(len(b.jobs)); id++ {
		j := b.jobs[id]
		if j.State == ledger.JobWaiting || j.State == ledger.JobRunning && !b.now().Before(j.until) {
			j.State, j.Owner, j.until = ledger.JobRunning, holder, b.now().Add(lease)
			return b.stands(j), nil
		}
	}
	return ledger.Job{}, ledger.ErrNotFound
}

func (b *jobsBook) KeepJob(ctx context.Context, id int64, holder, note string, lease time.Duration) (ledger.Job, error) {
	leave, err := b.enter(ctx, "keep")
	if err != nil {
		return ledger.Job{}, err
	}
	defer leave()
	j := b.jobs[id]
	if j.State != ledger.JobRunning || j.Owner != holder {
		return ledger.Job{}, ledger.ErrLost
	}
	j.until, j.Note = b.now().Add(lease), note
	b.notes = append(b.notes, note)
	return b.stands(j), nil
}

func (b *jobsBook) EndJob(ctx context.Context, id int64, holder string, state ledger.JobState, note string) error {
	leave, err := b.enter(ctx, "end")
	if err != nil {
		return err
	}
	defer leave()
	j := b.jobs[id]
	if j.State != ledger.JobRunning || j.Owner != holder {
		return ledger.ErrLost
	}
	j.State, j.Note, j.EndedAt = state, note, b.now()
	return nil
}

func (b *jobsBook) FirstEnds(ctx context.Context, id int64, n int) ([]ledger.Sending, error) {
	leave, err := b.enter(ctx, "first ends")
	if err != nil {
		return nil, err
	}
	defer leave()
	var ends []ledger.Sending
	for _, s := range b.sendings {
		if s.Job == id && s.Outcome != "" && s.Outcome != ledger.SendingWithdrawn {
			ends = append(ends, *s)
		}
	}
	slices.SortStableFunc(ends, func(a, b ledger.Sending) int { return a.EndedAt.Compare(b.EndedAt) })
	return ends[:min(n, len(ends))], nil
}

func (b *jobsBook) chosen(f ledger.Filter, before time.Time, n int, by ledger.Actor) []*jobsLetter {
	var chosen []*jobsLetter
	for _, l := range b.letters {
		switch {
		case len(chosen) == n:
			return chosen
		case l.State != ledger.Pending && l.State != ledger.Failed, len(f.States) > 0 && !slices.Contains(f.States, l.State),
			f.AttemptsBelow > 0 && l.Attempts >= f.AttemptsBelow, f.Kind != "" && f.Kind != l.Cause.Kind, !l.ChangedAt.Before(before), by.Job != 0 && l.Job == by.Job:
		default:
			chosen = append(chosen, l)
		}
	}
	return chosen
}

func (b *jobsBook) move(l *jobsLetter, state ledger.State, by ledger.Actor) {
	l.State, l.ChangedAt, l.ChangedBy = state, b.now(), by.Name
	if by.Job != 0 {
		l.Job = by.Job
	}
}

func (b *jobsBook) RetryMatching(ctx context.Context, f ledger.Filter, before time.Time, n int, _ time.Duration, by ledger.Actor) ([]int64, error) {
	leave, err := b.enter(ctx, "retry")
	if err != nil {
		return nil, err
	}
	defer leave()
	if by.Name == "" {
		return nil, errors.New("nobody does this")
	}
	var ids []int64
	for _, l := range b.chosen(f, before, n, by) {
		b.move(l, ledger.Processing, by)
		s := &ledger.Sending{ID: int64(len(b.sendings) + 1), LetterID: l.ID, Job: by.Job, By: by.Name, CreatedAt: b.now()}
		b.sendings, b.open, ids = append(b.sendings, s), append(b.open, s), append(ids, s.ID)
	}
	b.moves = append(b.moves, moved{time.Now(), len(ids), by})
	if j := b.jobs[by.Job]; j != nil {
		j.Sent += int64(len(ids))
	}
	return ids, nil
}

func (b *jobsBook) ResolveMatching(ctx context.Context, f ledger.Filter, before time.Time, n int, by ledger.Actor) (int, error) {
	leave, err := b.enter(ctx, "resolve")
	if err != nil {
		return 0, err
	}
	defer leave()
	chosen := b.chosen(f, before, n, by)
	for _, l := range chosen {
		b.move(l, ledger.Resolved, by)
	}
	b.moves = append(b.moves, moved{time.Now(), len(chosen), by})
	b.jobs[by.Job].Sent += int64(len(chosen))
	return len(chosen), nil
}

func (b *jobsBook) Duty(ctx context.Context, name, holder string, every, lease time.Duration) (bool, error) {
	leave, err := b.enter(ctx, "duty")
	if err != nil {
		return false, err
	}
	defer leave()
	d := &b.duty
	if name != "schedule" || !d.done.IsZero() && b.now().Sub(d.done) < every || d.holder != holder && b.now().Before(d.until) {
		return false, nil
	}
	d.holder, d.until = holder, b.now().Add(lease)
	return true, nil
}

func (b *jobsBook) DutyDone(ctx context.Context, _, holder string) error {
	leave, err := b.enter(ctx, "duty done")
	if err != nil {
		return err
	}
	defer leave()
	if b.duty.holder != holder {
		return ledger.ErrLost
	}
	b.duty.done, b.duty.until = b.now(), b.now()
	return nil
}

func (b *jobsBook) Remember(ctx context.Context, _, _ string) error {
	leave, err := b.enter(ctx, "remember")
	if err != nil {
		return err
	}
	defer leave()
	b.remembered = b.now()
	return nil
}

func (b *jobsBook) Remembered(ctx context.Context, _ string) (string, time.Time, error) {
	leave, err := b.enter(ctx, "remembered")
	if err != nil {
		return "", time.Time{}, err
	}
	defer leave()
	return "", b.remembered, nil
}

// consume ends every open retry as how says. An empty outcome leaves it open.
func (b *jobsBook) consume(how func(s *ledger.Sending) (ledger.SendingOutcome, string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = slices.DeleteFunc(b.open, func(s *ledger.Sending) bool {
		if s.Outcome, s.Code = how(s); s.Outcome == "" {
			return false
		}
		s.EndedAt = b.now()
		state := ledger.Pending
		if s.Outcome == ledger.SendingStored {
			state = ledger.Resolved
		}
		b.move(b.byID[s.LetterID], state, ledger.Actor{Name: "consumer"})
		return true
	})
}

// consumer ends retries regularly until ctx ends.
func (b *jobsBook) consumer(ctx context.Context, every time.Duration, how func(s *ledger.Sending) (ledger.SendingOutcome, string)) {
	for pause(ctx, every) {
		b.consume(how)
	}
}

func (b *jobsBook) see(id int64) ledger.Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stands(b.jobs[id])
}

func (b *jobsBook) sizes() (n []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.moves {
		n = append(n, m.n)
	}
	return n
}

// twice returns the letters that a job retried more than once.
func (b *jobsBook) twice() (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[string]bool{}
	for _, s := range b.sendings {
		key := fmt.Sprint(s.LetterID, s.Job)
		if seen[key] {
			ids = append(ids, s.LetterID)
		}
		seen[key] = true
	}
	return ids
}

func (b *jobsBook) noted(t *testing.T, part string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.ContainsFunc(b.notes, func(n string) bool { return strings.Contains(n, part) }) {
		t.Errorf("no note says %q; the last is %q", part, b.notes[len(b.notes)-1])
	}
}

// always ends every retry in the same way.
func always(o ledger.SendingOutcome, code string) func(*ledger.Sending) (ledger.SendingOutcome, string) {
	return func(*ledger.Sending) (ledger.SendingOutcome, string) { return o, code }
}

// probeFunc is a table whose probe is a func.
type probeFunc func() error

func (p probeFunc) Probe(ctx context.Context, _ time.Time) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p()
}

func well() error { return nil }
