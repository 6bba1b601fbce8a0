package console_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/record/envelope"
	"docket/internal/testkit/ledgermodel"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// book is a ledger in memory with as much as the console asks.
type book struct {
	ledger.Book // the tests need no other method
	ledgermodel.Cases
	mu          sync.Mutex
	letters     []ledger.Entry
	jobs        []ledger.Job
	audits      []ledger.Audit        // by number
	groupAudits []ledger.Audit        // by number
	reports     atomic.Int64          // questions of the first page
	away        atomic.Pointer[error] // of Report; nil: it answers
	slow        atomic.Int64          // nanoseconds of Report
	proposals   []ledger.Proposal
	left        []ledger.Surplus
	unlisted    error // of a list of proposals
}

func letterID(i int) string { return fmt.Sprintf("%064x", 0xabcdef000000+i) }

func newBook(n int) *book {
	b := &book{}
	b.Cases = ledgermodel.Cases{
		Begin: func() (func(), error) { b.mu.Lock(); return b.mu.Unlock, nil }, Now: func() time.Time { return noon },
		Letter: func(id string) *ledger.Entry {
			e, err := b.find(id)
			if err != nil {
				return nil
			}
			return e
		},
		Group: func(f string) bool { return f == b.letters[0].Fingerprint },
		Job: func(id int64) *ledger.Job {
			if id < 1 || int(id) > len(b.jobs) {
				return nil
			}
			return &b.jobs[id-1]
		},
	}
	for i := range n {
		e := ledger.Entry{State: ledger.Pending, SeenAt: noon, ChangedAt: noon, ChangedBy: "docket desk", Why: "read from its dead-letter topic",
			Letter: ledger.Letter{ID: letterID(i), Origin: envelope.Origin{Topic: "decision-logs", Partition: int32(i % 3), Offset: int64(i), Index: envelope.NoIndex, Timestamp: noon},
				Found: ledger.Found{Topic: "decision-logs-dlq", Offset: int64(i), Stamp: noon},
				Cause: envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "check_violation", Table: "decision_logs", Constraint: "path_ok"},
				Path:  "http/authz/allow", DecisionID: fmt.Sprintf("d-%d", i), DecisionTime: noon, FirstFailedAt: noon.Add(-time.Hour), FailedAt: noon.Add(-time.Duration(i) * time.Second),
				Value: []byte(`{"input":{"user":"` + marker + `"}}`), Key: []byte("key")}}
		e.Fingerprint = ledger.Fingerprint(e.Cause)
		b.letters = append(b.letters, e)
	}
	return b
}

func (b *book) fits(f ledger.Filter, e *ledger.Entry) bool {
	return (f.Fingerprint == "" || strings.HasPrefix(e.Fingerprint, f.Fingerprint)) && (len(f.States) == 0 || slices.Contains(f.States, e.State)) &&
		(f.To.IsZero() || e.FailedAt.Before(f.To))
}

func (b *book) List(_ context.Context, f ledger.Filter, p ledger.Page) (l ledger.List, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.letters {
		if b.fits(f, &b.letters[i]) && len(l.Entries) < p.Limit {
			l.Entries = append(l.Entries, b.letters[i])
		}
	}
	return l, nil
}

func (b *book) find(id string) (*ledger.Entry, error) {
	for i := range b.letters {
		if strings.HasPrefix(b.letters[i].ID, id) {
			return &b.letters[i], nil
		}
	}
	return nil, ledger.ErrNotFound
}

func (b *book) Show(_ context.Context, id string) (ledger.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.find(id)
	if err != nil {
		return ledger.Entry{}, err
	}
	return *e, nil
}

func (b *book) Claims(context.Context, string, int) ([]ledger.Entry, error) { return nil, nil }

func (b *book) Surplus(_ context.Context, _ bool, _ int64, n int) ([]ledger.Surplus, error) {
	return b.left[:min(n, len(b.left))], nil
}

func (b *book) History(_ context.Context, id string) ([]ledger.Audit, []ledger.Sending, error) {
	return []ledger.Audit{{At: noon, Act: ledger.Entered, To: ledger.Pending, By: "docket desk", Why: "read from its dead-letter topic"}}, nil, nil
}

func (b *book) Audits(_ context.Context, q ledger.AuditQuery) (found ledger.Audits, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.audits)
	if q.Groups {
		all = slices.Clone(b.groupAudits)
	}
	if q.After == 0 {
		slices.Reverse(all)
	}
	for i := range all {
		a := &all[i]
		if q.Before > 0 && a.ID >= q.Before || a.ID <= q.After || !q.Fits(a) {
			continue
		}
		if len(found.Lines) == q.Limit {
			found.Next = found.Lines[q.Limit-1].ID
			break
		}
		found.Lines = append(found.Lines, *a)
	}
	if q.After > 0 {
		slices.Reverse(found.Lines)
	}
	return found, nil
}

func (b *book) Groups(_ context.Context, f ledger.Filter) (all []ledger.Group, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := map[string]int{}
	for i := range b.letters {
		e := &b.letters[i]
		if !b.fits(f, e) {
			continue
		}
		n, found := at[e.Fingerprint]
		if !found {
			n = len(all)
			at[e.Fingerprint] = n
			all = append(all, ledger.Group{Fingerprint: e.Fingerprint, Kind: e.Cause.Kind, Code: e.Cause.Code, Message: e.Cause.Message, Constraint: e.Cause.Constraint, Paths: []string{e.Path},
				FirstSeen: e.FirstFailedAt, Oldest: e.FirstFailedAt, Newest: e.FailedAt, Counts: map[ledger.State]int64{}})
		}
		all[n].Counts[e.State]++
	}
	for i := range all {
		all[i] = b.Described(all[i])
	}
	return all, nil
}

func (b *book) Report(ctx context.Context) (all []ledger.ReportLine, err error) {
	b.reports.Add(1)
	time.Sleep(time.Duration(b.slow.Load())) // in virtual time
	if err := b.away.Load(); err != nil {
		return nil, *err
	}
	groups, err := b.Groups(ctx, ledger.Filter{})
	for _, g := range groups {
		all = append(all, ledger.ReportLine{Kind: g.Kind, Code: g.Code, Path: g.Paths[0], Counts: g.Counts, Oldest: g.Oldest})
	}
	return all, err
}

func (b *book) Resolve(_ context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.move(ids, ledger.Resolved, by)
}

func (b *book) Retry(_ context.Context, ids []string, _ time.Duration, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.move(ids, ledger.Processing, by)
}

func (b *book) move(ids []string, to ledger.State, by ledger.Actor) (all []ledger.Outcome, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		e, err := b.find(id)
		if err == nil {
			e.State, e.ChangedBy, e.Why = to, by.Name, by.Why
		}
		all = append(all, ledger.Outcome{ID: id, Err: err})
	}
	return all, nil
}

func (b *book) CreateJob(_ context.Context, j ledger.Job) (ledger.Job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.ID, j.State, j.CreatedAt, j.Matched = int64(len(b.jobs)+1), ledger.JobWaiting, noon, j.Limit
	b.jobs = append(b.jobs, j)
	return j, nil
}

func (b *book) Job(_ context.Context, id int64) (ledger.Job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 1 || int(id) > len(b.jobs) {
		return ledger.Job{}, ledger.ErrNotFound
	}
	return b.jobs[id-1], nil
}

func (b *book) ListJobs(_ context.Context, before int64, n int) (jobs []ledger.Job, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range slices.Backward(b.jobs) {
		if (before == 0 || j.ID < before) && len(jobs) < n {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

func (b *book) StopJob(ctx context.Context, id int64, _ string, by ledger.Actor) (ledger.Job, error) {
	return b.turn(ctx, id, ledger.JobStopped)
}

func (b *book) ResumeJob(ctx context.Context, id int64, _ ledger.Actor) (ledger.Job, error) {
	return b.turn(ctx, id, ledger.JobWaiting)
}

func (b *book) turn(_ context.Context, id int64, to ledger.JobState) (ledger.Job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 1 || int(id) > len(b.jobs) {
		return ledger.Job{}, ledger.ErrNotFound
	}
	b.jobs[id-1].State = to
	return b.jobs[id-1], nil
}

// tries is a dry run that remembers what it was asked for.
type tries struct {
	mu    sync.Mutex
	asked []ledger.Filter
}

func (t *tries) Run(_ context.Context, f ledger.Filter, _ int64, _ func(done, total int64)) (worker.TrialResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = append(t.asked, f)
	return worker.TrialResult{Total: 5, Would: 3, There: 1, StillFail: []worker.TrialFault{{Code: "23514", Constraint: "path_ok", Letters: 1}}}, nil
}

func (t *tries) RunValue(context.Context, []byte) (worker.TrialResult, error) {
	return worker.TrialResult{}, nil
}

func (t *tries) RunIDs(context.Context, []string, func(done, total int64)) (worker.TrialResult, error) {
	return worker.TrialResult{}, nil
}

type horizon struct{}

func (horizon) Look(context.Context, time.Time) []worker.HorizonLine {
	return []worker.HorizonLine{{Topic: "decision-logs-parking", Oldest: noon.Add(-time.Hour), Used: 0.6, Unread: 3}, {Topic: "decision-logs-dlq", Forever: true}}
}
