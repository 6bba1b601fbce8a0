package api_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/record/envelope"
	"docket/internal/testkit/ledgermodel"
)

// marker is in every payload, key and header of the tests, and must appear only in payloads.
const marker = "planted-personal-data"

// markOfRetry is the mark of a retry, which no answer may contain.
const markOfRetry = "planted-mark-of-a-retry"

// book is a ledger in memory that obeys the moves of package ledger.
type book struct {
	ledger.Book // the tests need no other method
	ledgermodel.Cases
	mu       sync.Mutex
	letters  map[string]*ledger.Entry
	audit    map[string][]ledger.Audit
	jobs     []ledger.Job
	err      error // where it is set everything fails with it
	two      bool  // evidence is changed by two persons
	proposed []ledger.Proposal
	refuses  error // of decisions on proposals
	left     []ledger.Surplus
	alike    []ledger.Group // in place of those of letters
	hook     func()         // at the beginning of each call
}

var _ ledger.Book = (*book)(nil)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newBook(n int) *book {
	b := &book{letters: map[string]*ledger.Entry{}, audit: map[string][]ledger.Audit{}}
	b.Cases = b.cases()
	for i := range n {
		e := ledger.Entry{State: ledger.Pending, Attempts: i % 3, SeenAt: noon, ChangedAt: noon, ChangedBy: "desk", Why: "it was read",
			Letter: ledger.Letter{
				ID: id(i), Origin: envelope.Origin{Topic: "decision-logs", Partition: int32(i % 2), Offset: int64(i), Index: i % 2, Timestamp: noon},
				Found: ledger.Found{Topic: "decision-logs-dlq", Offset: int64(i), Stamp: noon},
				Cause: envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "check_violation", Table: "decision_logs", Constraint: "path_ok"},
				Path:  "http/authz", DecisionID: "d" + id(i)[:4], DecisionTime: noon,
				FirstFailedAt: noon, FailedAt: noon.Add(time.Duration(i) * time.Second),
				Key: []byte("key " + marker), Value: []byte(`{"who":"` + marker + `"}`),
				Headers: []ledger.Header{{Key: "trace", Value: []byte(marker)}, {Key: "raw", Value: []byte{0xff, 0xfe}}, {Key: "none"}},
			}}
		if i%2 == 0 {
			e.Origin.Index = envelope.NoIndex
		}
		e.Fingerprint = ledger.Fingerprint(e.Cause)
		b.letters[e.ID] = &e
		b.proposed = append(b.proposed, ledger.Proposal{ID: int64(i + 1), LetterID: e.ID, State: ledger.ProposalOpen, Members: []string{"path"}, Value: []byte(`{"path":"` + marker + `"}`), By: "mara", Why: "w",
			Vouched: i != 1, Login: "docket_desk", CreatedAt: noon, ExpiresAt: noon.Add(7 * 24 * time.Hour)})
		b.audit[e.ID] = []ledger.Audit{{ID: int64(i), At: noon, LetterID: e.ID, Act: ledger.Entered, To: ledger.Pending, By: "desk", Why: "it was read"}}
	}
	return b
}

// id returns the id of the letter i. Its first six digits are unique, except for letters from 90 on, which all begin
// alike.
func id(i int) string {
	const digits = "0123456789"
	if i >= 90 {
		return strings.Repeat("e", 62) + digits[i/10%10:i/10%10+1] + digits[i%10:i%10+1]
	}
	return "abcd" + digits[i/10:i/10+1] + digits[i%10:i%10+1] + strings.Repeat("0", 58)
}

func (b *book) enter() (func(), error) {
	if b.hook != nil {
		b.hook()
	}
	b.mu.Lock()
	return b.mu.Unlock, b.err
}

func (b *book) find(id string) (*ledger.Entry, error) {
	var found *ledger.Entry
	for whole, e := range b.letters {
		if strings.HasPrefix(whole, id) {
			if found != nil {
				return nil, ledger.ErrAmbiguous
			}
			found = e
		}
	}
	if found == nil {
		return nil, ledger.ErrNotFound
	}
	return found, nil
}

func (b *book) List(_ context.Context, f ledger.Filter, p ledger.Page) (ledger.List, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return ledger.List{}, err
	}
	var all []ledger.Entry
	for _, e := range b.letters {
		if len(f.States) == 0 || slices.Contains(f.States, e.State) {
			seen := *e
			seen.Key, seen.Value, seen.Headers = nil, nil, nil
			all = append(all, seen)
		}
	}
	slices.SortFunc(all, func(x, y ledger.Entry) int { return cmp.Compare(y.ID, x.ID) })
	if p.After != "" {
		all = slices.DeleteFunc(all, func(e ledger.Entry) bool { return e.ID >= p.After })
	}
	if len(all) <= p.Limit {
		return ledger.List{Entries: all}, nil
	}
	return ledger.List{Entries: all[:p.Limit], Next: all[p.Limit-1].ID}, nil
}

func (b *book) Show(_ context.Context, id string) (ledger.Entry, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return ledger.Entry{}, err
	}
	e, err := b.find(id)
	if err != nil {
		return ledger.Entry{}, err
	}
	return *e, nil
}

func (b *book) Claims(_ context.Context, id string, n int) (all []ledger.Entry, err error) {
	leave, err := b.enter()
	defer leave()
	for _, e := range b.letters {
		if e.DecisionID == id && len(all) < n {
			all = append(all, *e)
		}
	}
	return all, err
}

func (b *book) History(_ context.Context, id string) ([]ledger.Audit, []ledger.Sending, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return nil, nil, err
	}
	var sent []ledger.Sending
	for _, a := range b.audit[id] {
		if a.Act == ledger.Retried {
			sent = append(sent, ledger.Sending{LetterID: id, Mark: markOfRetry, Topic: "decision-logs", Value: []byte(marker), By: a.By, CreatedAt: a.At,
				Published: ledger.Found{Topic: "decision-logs", Partition: 1, Offset: 9, Stamp: noon}, Outcome: ledger.SendingDead, EndedAt: noon, Code: "23514"})
		}
	}
	return b.audit[id], sent, nil
}

func (b *book) Groups(_ context.Context, _ ledger.Filter) ([]ledger.Group, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	if b.alike != nil {
		return b.alike, nil
	}
	g := ledger.Group{Kind: envelope.Data, Code: "23514", Message: "check_violation", Counts: map[ledger.State]int64{}, FirstSeen: noon}
	for _, e := range b.letters {
		g.Fingerprint = e.Fingerprint
		g.Counts[e.State]++
	}
	return []ledger.Group{g}, nil
}

func (b *book) Report(context.Context) ([]ledger.ReportLine, error) {
	leave, err := b.enter()
	defer leave()
	return []ledger.ReportLine{
		{Kind: envelope.Data, Code: "23514", Path: "http/authz", Counts: map[ledger.State]int64{ledger.Pending: 3}, Oldest: noon},
		{Kind: envelope.Transient, Code: "network", Counts: map[ledger.State]int64{ledger.Failed: 5}, Oldest: noon},
	}, err
}

func (b *book) move(ids []string, to ledger.State, act ledger.Act, by ledger.Actor) []ledger.Outcome {
	var out []ledger.Outcome
	for _, id := range ids {
		e, found := b.letters[id]
		switch {
		case !found:
			out = append(out, ledger.Outcome{ID: id, Err: ledger.ErrNotFound})
			continue
		case !ledger.Legal(e.State, to, act):
			out = append(out, ledger.Outcome{ID: id, Err: &ledger.RefusedError{ID: id, State: e.State, Act: act, By: e.ChangedBy, At: e.ChangedAt}})
			continue
		}
		b.audit[id] = append(b.audit[id], ledger.Audit{At: noon, LetterID: id, Act: act, From: e.State, To: to, By: by.Name, Why: by.Why})
		e.State, e.ChangedBy, e.Why = to, by.Name, by.Why
		out = append(out, ledger.Outcome{ID: id})
	}
	return out
}

func (b *book) Retry(_ context.Context, ids []string, _ time.Duration, by ledger.Actor) ([]ledger.Outcome, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	return b.move(ids, ledger.Processing, ledger.Retried, by), nil
}

func (b *book) Resolve(_ context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	return b.move(ids, ledger.Resolved, ledger.Closed, by), nil
}

func (b *book) Edit(_ context.Context, id string, seen ledger.Version, value []byte, diff string, lease time.Duration, by ledger.Actor) error {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return err
	}
	e := b.letters[id]
	if e.State != ledger.Pending && e.State != ledger.Failed {
		return &ledger.RefusedError{ID: id, State: e.State, Act: ledger.Edited, By: e.ChangedBy, At: e.ChangedAt}
	}
	if seen != "" && seen != ledger.VersionOf(e.Value) {
		return &ledger.EditedError{ID: id}
	}
	b.audit[id] = append(b.audit[id], ledger.Audit{At: noon, LetterID: id, Act: ledger.Edited, From: e.State, To: e.State, By: by.Name, Why: by.Why,
		Original: e.Value, Diff: diff})
	e.Value, e.Edited = value, true
	if lease > 0 {
		b.move([]string{id}, ledger.Processing, ledger.Retried, by)
	}
	return nil
}

// Touched has the path as the only evidence.
func (b *book) Touched(_ context.Context, _ string, value []byte) (members []string, second bool, err error) {
	leave, err := b.enter()
	defer leave()
	if strings.Contains(string(value), `"path"`) {
		members = []string{"path"}
	}
	return members, b.two && len(members) > 0, err
}

func (b *book) Propose(_ context.Context, d ledger.Draft, by ledger.Actor) (ledger.Proposal, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return ledger.Proposal{}, err
	}
	e := b.letters[d.LetterID]
	if e.State != ledger.Pending {
		return ledger.Proposal{}, &ledger.RefusedError{ID: e.ID, State: e.State, By: e.ChangedBy, At: e.ChangedAt}
	}
	p := ledger.Proposal{ID: int64(len(b.proposed) + 1), LetterID: e.ID, State: ledger.ProposalOpen, Members: []string{"path"}, Retry: d.Retry, Value: d.Value, By: by.Name, Why: by.Why, Vouched: by.Vouched,
		Login: "docket_desk", CreatedAt: noon, ExpiresAt: noon.Add(7 * 24 * time.Hour)}
	b.proposed = append(b.proposed, p)
	return p, nil
}

func (b *book) Proposal(_ context.Context, id int64) (ledger.Proposal, error) {
	leave, err := b.enter()
	defer leave()
	if err == nil && id > int64(len(b.proposed)) {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Proposal{}, err
	}
	return b.proposed[id-1], nil
}

func (b *book) ListProposals(_ context.Context, q ledger.ProposalQuery, n int) (list []ledger.Proposal, err error) {
	leave, err := b.enter()
	defer leave()
	for _, p := range slices.Backward(b.proposed) {
		if (q.All || p.State == ledger.ProposalOpen) && (q.LetterID == "" || p.LetterID == q.LetterID) && (q.Before == 0 || p.ID < q.Before) && len(list) < n {
			p.Value = nil
			list = append(list, p)
		}
	}
	return list, err
}

func (b *book) ended(id int64, state ledger.ProposalState, by ledger.Actor, also func(ledger.Proposal) ledger.Because) (ledger.Proposal, error) {
	p, err := b.Proposal(context.Background(), id)
	if err != nil {
		return p, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses != nil {
		return p, b.refuses
	}
	because := also(p)
	if p.State != ledger.ProposalOpen {
		because = ledger.BecauseEnded
	}
	if because != "" {
		return p, &ledger.ProposalError{ID: id, Because: because}
	}
	p.State, p.Decided = state, ledger.Decided{By: by.Name, Why: by.Why, Login: "docket_desk", At: noon}
	b.proposed[id-1] = p
	return p, nil
}

func (b *book) Approve(_ context.Context, id int64, diff string, _ time.Duration, by ledger.Actor) (ledger.Proposal, error) {
	return b.ended(id, ledger.ProposalApproved, by, func(p ledger.Proposal) ledger.Because {
		switch {
		case p.By == by.Name:
			return ledger.BecauseName
		case p.Vouched != by.Vouched:
			return ledger.BecauseOtherWay
		}
		b.audit[p.LetterID] = append(b.audit[p.LetterID], ledger.Audit{At: noon, LetterID: p.LetterID, Act: ledger.Edited, By: p.By, Diff: diff})
		return ""
	})
}

func (b *book) Reject(_ context.Context, id int64, by ledger.Actor) (ledger.Proposal, error) {
	return b.ended(id, ledger.ProposalRejected, by, func(ledger.Proposal) ledger.Because { return "" })
}

func (b *book) CreateJob(_ context.Context, j ledger.Job) (ledger.Job, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return ledger.Job{}, err
	}
	j.ID, j.State, j.Matched, j.CreatedAt = int64(len(b.jobs)+1), ledger.JobWaiting, int64(len(b.letters)), noon
	b.jobs = append(b.jobs, j)
	return j, nil
}

func (b *book) Job(_ context.Context, id int64) (ledger.Job, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return ledger.Job{}, err
	}
	if id > int64(len(b.jobs)) {
		return ledger.Job{}, ledger.ErrNotFound
	}
	return b.jobs[id-1], nil
}

func (b *book) ListJobs(_ context.Context, before int64, n int) (jobs []ledger.Job, err error) {
	leave, err := b.enter()
	defer leave()
	for _, j := range slices.Backward(b.jobs) {
		if (before == 0 || j.ID < before) && len(jobs) < n {
			jobs = append(jobs, j)
		}
	}
	return jobs, err
}

func (b *book) turn(id int64, from []ledger.JobState, to ledger.JobState, by ledger.Actor) (ledger.Job, error) {
	leave, err := b.enter()
	defer leave()
	if err != nil {
		return ledger.Job{}, err
	}
	if id > int64(len(b.jobs)) {
		return ledger.Job{}, ledger.ErrNotFound
	}
	j := &b.jobs[id-1]
	if !slices.Contains(from, j.State) {
		return *j, nil // as it is
	}
	j.StoppedBy = by.Name
	j.State = to
	return *j, nil
}

func (b *book) StopJob(_ context.Context, id int64, _ string, by ledger.Actor) (ledger.Job, error) {
	return b.turn(id, []ledger.JobState{ledger.JobWaiting, ledger.JobRunning}, ledger.JobStopped, by)
}

func (b *book) ResumeJob(_ context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	return b.turn(id, []ledger.JobState{ledger.JobStopped}, ledger.JobWaiting, by)
}

// tries is a dry run with some failures.
type tries struct{ err error }

func (t tries) Run(context.Context, ledger.Filter, int64, func(done, total int64)) (worker.TrialResult, error) {
	return worker.TrialResult{Total: 4819, Would: 4812, StillFail: []worker.TrialFault{{Code: "23514", Constraint: "path_ok", Letters: 7}}}, t.err
}

func (t tries) RunIDs(_ context.Context, ids []string, _ func(done, total int64)) (worker.TrialResult, error) {
	return worker.TrialResult{Total: int64(len(ids)), Unwell: &worker.TrialUnwell{Code: "53100", Hint: "make room"}}, t.err
}

func (t tries) RunValue(_ context.Context, value []byte) (worker.TrialResult, error) {
	return worker.TrialResult{Total: 1, Would: int64(len(value))}, t.err
}

type horizon struct{}

func (horizon) Look(context.Context, time.Time) []worker.HorizonLine {
	return []worker.HorizonLine{{Topic: "decision-logs-dlq", Oldest: noon, RetentionKnown: true, Used: 0.6, Deadline: noon.Add(time.Hour)},
		{Topic: "decision-logs-parking", Error: "the brokers said " + marker}}
}

func (b *book) Surplus(_ context.Context, _ bool, after int64, n int) ([]ledger.Surplus, error) {
	ranges := slices.DeleteFunc(slices.Clone(b.left), func(r ledger.Surplus) bool { return r.ID <= after })
	return ranges[:min(n, len(ranges))], b.err
}

func (b *book) OrderSurplus(context.Context, int64, ledger.Actor) error { return b.err }

// Audits gives one line of each audit that fits, with payloads.
func (b *book) Audits(_ context.Context, q ledger.AuditQuery) (found ledger.Audits, err error) {
	line := ledger.Audit{ID: 7, At: noon, LetterID: id(0), Act: ledger.Closed, From: ledger.Pending, To: ledger.Resolved, By: "rule 3 of mara", Why: "done", Job: 2, Login: "docket", Withheld: true, Original: []byte(marker), Diff: marker, Was: []byte(marker)}
	if q.Groups {
		line = ledger.Audit{ID: 7, At: noon, Fingerprint: fingerprint, Rule: 3, Act: "rule_added", By: "mara", Why: "flaky", Login: "docket"}
	}
	if q.Fits(&line) && (q.Before == 0 || line.ID < q.Before) && line.ID > q.After {
		found.Lines, found.Next = append(found.Lines, line), 7
	}
	return found, b.err
}

func (b *book) Desks(context.Context, time.Duration) ([]string, error) {
	return []string{"desk-1"}, b.err
}
