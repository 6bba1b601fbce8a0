package tree

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/record/envelope"
	"docket/internal/testkit/ledgermodel"
)

// now is the time in all these tests.
var now = time.Date(2026, 11, 21, 20, 15, 3, 0, time.UTC)

// book is a small ledger in memory. How a retry ends is told by ends, after it was looked at a few times.
type book struct {
	ledgermodel.Cases
	mu      sync.Mutex
	entries []ledger.Entry
	audits  map[string][]ledger.Audit
	sent    map[string][]ledger.Sending
	jobs    []ledger.Job
	desks   []string
	surplus []ledger.Surplus
	former  bool // it has no pages of ranges

	remembers string // the note of the archive
	fails     error  // of every read, where it is set
	broken    error  // of each page of a list after the first one

	touches   []string // of the evidence, by every edit; none: one person is enough
	proposals []ledger.Proposal
	refuses   ledger.Because // why nothing is approved
	overtaken []byte         // the payload that somebody else saves just before an edit

	looks map[string]int
	ends  func(id string, looks int) (ledger.SendingOutcome, string)
	step  func(j *ledger.Job) // changes a job between two looks, as a desk does

	did []string // the changes, in words
}

func newBook(entries ...ledger.Entry) *book {
	b := &book{}
	b.Cases = ledgermodel.Cases{
		Begin: func() (func(), error) { b.mu.Lock(); return b.mu.Unlock, b.fails }, Now: func() time.Time { return now },
		Letter: func(id string) *ledger.Entry {
			e, err := b.find(id)
			if err != nil {
				return nil
			}
			return e
		},
		Group: func(f string) bool {
			return slices.ContainsFunc(b.entries, func(e ledger.Entry) bool { return e.Fingerprint == f })
		},
		Job: func(id int64) *ledger.Job {
			if id < 1 || int(id) > len(b.jobs) {
				return nil
			}
			return &b.jobs[id-1]
		},
	}
	b.entries, b.audits, b.sent, b.looks, b.desks = slices.Clone(entries), map[string][]ledger.Audit{}, map[string][]ledger.Sending{}, map[string]int{}, []string{"desk-1"}
	for _, e := range entries {
		b.audits[e.ID] = []ledger.Audit{{ID: 1, At: e.SeenAt, LetterID: e.ID, Act: ledger.Entered, To: ledger.Pending, By: "desk desk-1", Why: "read from " + e.Found.Topic}}
		if e.State != ledger.Pending {
			act, from := ledger.Died, ledger.Processing
			switch e.State {
			case ledger.Resolved:
				act, from = ledger.Closed, ledger.Pending
			case ledger.Processing:
				act, from = ledger.Retried, ledger.Pending
			}
			b.audit(e.ID, ledger.Audit{At: e.ChangedAt, Act: act, From: from, To: e.State, By: e.ChangedBy, Why: e.Why, Attempts: e.Attempts})
		}
	}
	return b
}

func (b *book) audit(id string, a ledger.Audit) {
	a.LetterID, a.ID = id, int64(len(b.audits[id])+1)
	b.audits[id] = append(b.audits[id], a)
}

func (b *book) note(format string, args ...any) { b.did = append(b.did, fmt.Sprintf(format, args...)) }

func (b *book) changes() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.did, "\n")
}

func fits(e ledger.Entry, f ledger.Filter) bool {
	return strings.HasPrefix(e.Fingerprint, f.Fingerprint) && (f.Kind == "" || f.Kind == e.Cause.Kind) && (f.Code == "" || f.Code == e.Cause.Code) &&
		(f.Path == "" || f.Path == e.Path) && (len(f.States) == 0 || slices.Contains(f.States, e.State)) && (f.From.IsZero() || !e.FailedAt.Before(f.From)) &&
		(f.To.IsZero() || e.FailedAt.Before(f.To)) && (f.Topic == "" || f.Topic == e.Origin.Topic) &&
		(f.Snoozed == "" || (f.Snoozed == ledger.OnlySnoozed) == e.SnoozedUntil.After(now)) && (f.Assigned == "" || f.Assigned == e.Assigned) && (f.Partition == nil || *f.Partition == e.Origin.Partition)
}

func (b *book) chosen(f ledger.Filter) []ledger.Entry {
	var out []ledger.Entry
	for _, e := range b.entries {
		if fits(e, f) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(x, y ledger.Entry) int {
		return cmp.Or(y.FailedAt.Compare(x.FailedAt), strings.Compare(y.ID, x.ID))
	})
	return out
}

func (b *book) List(_ context.Context, f ledger.Filter, p ledger.Page) (ledger.List, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails != nil {
		return ledger.List{}, b.fails
	}
	all, from := b.chosen(f), 0
	if p.After != "" && b.broken != nil {
		return ledger.List{}, b.broken
	}
	if p.After != "" {
		from = 1 + slices.IndexFunc(all, func(e ledger.Entry) bool { return e.ID == p.After })
	}
	to := min(from+cmp.Or(p.Limit, 50), len(all))
	list := ledger.List{}
	for _, e := range all[from:to] {
		e.Key, e.Value, e.Headers = nil, nil, nil
		list.Entries = append(list.Entries, e)
	}
	if to < len(all) {
		list.Next = all[to-1].ID
	}
	return list, nil
}

func (b *book) find(id string) (*ledger.Entry, error) {
	var found *ledger.Entry
	for i := range b.entries {
		if strings.HasPrefix(b.entries[i].ID, id) {
			if found != nil {
				return nil, &ledger.AmbiguousError{IDs: []string{found.ID, b.entries[i].ID}}
			}
			found = &b.entries[i]
		}
	}
	if found == nil {
		return nil, ledger.ErrNotFound
	}
	return found, nil
}

func (b *book) Show(_ context.Context, id string) (ledger.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails != nil {
		return ledger.Entry{}, b.fails
	}
	e, err := b.find(id)
	if err != nil {
		return ledger.Entry{}, err
	}
	return *e, nil
}

func (b *book) Claims(_ context.Context, id string, n int) (all []ledger.Entry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.chosen(ledger.Filter{}) {
		if e.DecisionID == id && len(all) < n {
			all = append(all, e)
		}
	}
	return all, b.fails
}

// Audits numbers the lines of all letters by their time.
func (b *book) Audits(_ context.Context, q ledger.AuditQuery) (found ledger.Audits, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []ledger.Audit
	for _, id := range slices.Sorted(maps.Keys(b.audits)) {
		all = append(all, b.audits[id]...)
	}
	slices.SortStableFunc(all, func(x, y ledger.Audit) int { return x.At.Compare(y.At) })
	if q.Groups {
		all = []ledger.Audit{{At: now, Fingerprint: deadLetters()[0].Fingerprint, Rule: 7, Act: "rule_added", By: "mara", Why: "flaky\x1b[31m", Login: "docket"}, {At: now, Fingerprint: deadLetters()[0].Fingerprint, Act: ledger.Assigned, By: "mara", Why: "to oleg: yours", Login: "docket"}}
	}
	for i := range all {
		all[i].ID = int64(i + 1)
	}
	for _, a := range slices.Backward(all) {
		switch {
		case q.Before > 0 && a.ID >= q.Before || !q.Fits(&a):
		case len(found.Lines) == q.Limit:
			found.Next = found.Lines[q.Limit-1].ID
			return found, b.fails
		default:
			found.Lines = append(found.Lines, a)
		}
	}
	return found, b.fails
}

// History also lets time pass: a retry that was looked at often enough ends.
func (b *book) History(_ context.Context, id string) ([]ledger.Audit, []ledger.Sending, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, err := b.find(id); err == nil && e.State == ledger.Processing && b.ends != nil {
		b.looks[id]++
		if outcome, code := b.ends(id, b.looks[id]); outcome != "" {
			b.end(e, outcome, code)
		}
	}
	return b.audits[id], b.sent[id], nil
}

func (b *book) end(e *ledger.Entry, outcome ledger.SendingOutcome, code string) {
	a := map[ledger.SendingOutcome]ledger.Audit{
		ledger.SendingStored:    {Act: ledger.Stored, To: ledger.Resolved, Why: "row stored, first read at " + e.Origin.Topic + "/0/99"},
		ledger.SendingDead:      {Act: ledger.Died, To: ledger.Pending, Why: "dead again", Attempts: e.Attempts + 1},
		ledger.SendingRefused:   {Act: ledger.Refused, To: ledger.Failed, Why: "not published"},
		ledger.SendingWithdrawn: {Act: ledger.LeaseEnded, To: ledger.Pending, Why: "nothing was heard of it"},
	}[outcome]
	a.From, a.At, a.By = e.State, now, "desk desk-1"
	e.State, e.Attempts = a.To, max(e.Attempts, a.Attempts)
	b.audit(e.ID, a)
	if n := len(b.sent[e.ID]); n > 0 {
		s := &b.sent[e.ID][n-1]
		s.Outcome, s.Code, s.EndedAt = outcome, code, now
	}
}

func (b *book) Values(_ context.Context, f ledger.Filter, _, _ int, each func([]ledger.Entry) error) error {
	return each(b.chosen(f))
}

func (b *book) Groups(_ context.Context, f ledger.Filter) ([]ledger.Group, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails != nil {
		return nil, b.fails
	}
	var out []ledger.Group
	for _, e := range b.chosen(f) {
		i := slices.IndexFunc(out, func(g ledger.Group) bool { return g.Fingerprint == e.Fingerprint })
		if i < 0 {
			i = len(out)
			out = append(out, ledger.Group{
				Fingerprint: e.Fingerprint, Kind: e.Cause.Kind, Code: e.Cause.Code, Table: e.Cause.Table, Column: e.Cause.Column, Constraint: e.Cause.Constraint,
				Message: e.Cause.Message, Counts: map[ledger.State]int64{}, FirstSeen: e.SeenAt, Newest: e.FailedAt,
			})
		}
		g := &out[i]
		g.Counts[e.State]++
		if e.Path != "" && !slices.Contains(g.Paths, e.Path) {
			g.Paths = append(g.Paths, e.Path)
		}
		if e.State != ledger.Resolved && (g.Oldest.IsZero() || e.FirstFailedAt.Before(g.Oldest)) {
			g.Oldest = e.FirstFailedAt
		}
	}
	return out, nil
}

func (b *book) Counts(_ context.Context, f ledger.Filter) (map[ledger.State]int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[ledger.State]int64{}
	for _, e := range b.chosen(f) {
		counts[e.State]++
	}
	return counts, b.fails
}

func (b *book) Report(context.Context) ([]ledger.ReportLine, error) {
	groups, err := b.Groups(context.Background(), ledger.Filter{})
	var lines []ledger.ReportLine
	for _, g := range groups {
		path := ""
		if len(g.Paths) > 0 {
			path = g.Paths[0]
		}
		lines = append(lines, ledger.ReportLine{Kind: g.Kind, Code: g.Code, Path: path, Counts: g.Counts, Oldest: g.Oldest})
	}
	return lines, err
}

func (b *book) OldestFound(context.Context) (map[string]time.Time, error) { return nil, nil }

func (b *book) move(ids []string, to ledger.State, act ledger.Act, by ledger.Actor) ([]ledger.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails != nil {
		return nil, b.fails
	}
	var out []ledger.Outcome
	for _, id := range ids {
		o := ledger.Outcome{ID: id}
		switch e, err := b.find(id); {
		case err != nil:
			o.Err = err
		case e.State != ledger.Pending && e.State != ledger.Failed:
			o.Err = &ledger.RefusedError{ID: id, State: e.State, Act: act, By: e.ChangedBy, At: e.ChangedAt}
		default:
			b.audit(id, ledger.Audit{At: now, Act: act, From: e.State, To: to, By: by.Name, Why: by.Why, Attempts: e.Attempts})
			b.note("%s %.12s by %s: %s", act, id, by.Name, by.Why)
			e.State, e.ChangedAt, e.ChangedBy, e.Why = to, now, by.Name, by.Why
			if act == ledger.Retried {
				b.sent[id] = append(b.sent[id], ledger.Sending{ID: int64(len(b.sent) + 1), LetterID: id, CreatedAt: now, By: by.Name})
			}
		}
		out = append(out, o)
	}
	return out, nil
}

func (b *book) Retry(_ context.Context, ids []string, _ time.Duration, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.move(ids, ledger.Processing, ledger.Retried, by)
}

func (b *book) Resolve(_ context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.move(ids, ledger.Resolved, ledger.Closed, by)
}

func (b *book) RetryMatching(context.Context, ledger.Filter, time.Time, int, time.Duration, ledger.Actor) ([]int64, error) {
	panic("only a desk does that")
}

func (b *book) ResolveMatching(context.Context, ledger.Filter, time.Time, int, ledger.Actor) (int, error) {
	panic("only a desk does that")
}

func (b *book) Edit(ctx context.Context, id string, seen ledger.Version, value []byte, diff string, lease time.Duration, by ledger.Actor) error {
	b.mu.Lock()
	e, err := b.find(id)
	if err == nil && b.overtaken != nil {
		e.Value = b.overtaken
	}
	if err == nil && seen != "" && seen != ledger.VersionOf(e.Value) {
		err = &ledger.EditedError{ID: id}
	}
	if err == nil {
		b.audit(id, ledger.Audit{At: now, Act: ledger.Edited, From: e.State, To: e.State, By: by.Name, Why: by.Why, Original: e.Value, Diff: diff})
		e.Value, e.Edited = value, true
		b.note("edited %.12s by %s: %s: %s", id, by.Name, by.Why, value)
	}
	b.mu.Unlock()
	if err != nil || lease == 0 {
		return err
	}
	out, err := b.Retry(ctx, []string{id}, lease, by)
	if err != nil {
		return err
	}
	return out[0].Err
}

func (b *book) Touched(context.Context, string, []byte) ([]string, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.touches, len(b.touches) > 0, b.fails
}

func (b *book) Propose(_ context.Context, d ledger.Draft, by ledger.Actor) (ledger.Proposal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.find(d.LetterID)
	if err != nil {
		return ledger.Proposal{}, err
	}
	p := ledger.Proposal{
		ID: int64(len(b.proposals) + 1), LetterID: e.ID, State: ledger.ProposalOpen, Members: b.touches, Retry: d.Retry, Value: d.Value, By: by.Name, Why: by.Why, Login: "clerk_mara",
		CreatedAt: now, ExpiresAt: now.Add(7 * 24 * time.Hour),
	}
	b.proposals = append(b.proposals, p)
	b.audit(e.ID, ledger.Audit{At: now, Act: ledger.Proposed, From: e.State, To: e.State, By: by.Name, Why: fmt.Sprintf("proposal %d: %s", p.ID, by.Why), Login: p.Login})
	b.note("proposed %.12s by %s: %s: %s, retry %v, before %.20s", e.ID, by.Name, by.Why, d.Value, d.Retry, d.Before)
	return p, nil
}

func (b *book) Proposal(_ context.Context, id int64) (ledger.Proposal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 1 || int(id) > len(b.proposals) {
		return ledger.Proposal{}, ledger.ErrNotFound
	}
	return b.proposals[id-1], b.fails
}

func (b *book) ListProposals(_ context.Context, q ledger.ProposalQuery, n int) (list []ledger.Proposal, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range slices.Backward(b.proposals) {
		if (q.All || p.State == ledger.ProposalOpen) && (q.Before == 0 || p.ID < q.Before) && len(list) < n {
			p.Value = nil
			list = append(list, p)
		}
	}
	return list, b.fails
}

// ended takes a proposal that is open to its end.
func (b *book) ended(id int64, state ledger.ProposalState, act ledger.Act, by ledger.Actor) (ledger.Proposal, error) {
	p, err := b.Proposal(context.Background(), id)
	if err != nil {
		return p, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuses != "" {
		return p, &ledger.ProposalError{ID: id, Because: b.refuses}
	}
	p.State, p.Decided = state, ledger.Decided{By: by.Name, Why: by.Why, Login: "clerk_oleg", At: now}
	b.proposals[id-1] = p
	b.audit(p.LetterID, ledger.Audit{At: now, Act: act, From: ledger.Pending, To: ledger.Pending, By: by.Name, Why: fmt.Sprintf("proposal %d: %s", id, by.Why), Login: "clerk_oleg"})
	b.note("%s proposal %d by %s: %s", act, id, by.Name, by.Why)
	return p, nil
}

func (b *book) Approve(ctx context.Context, id int64, diff string, lease time.Duration, by ledger.Actor) (ledger.Proposal, error) {
	p, err := b.ended(id, ledger.ProposalApproved, ledger.Approved, by)
	if err != nil {
		return p, err
	}
	if !p.Retry {
		lease = 0
	}
	return p, b.Edit(ctx, p.LetterID, "", p.Value, diff, lease, ledger.Actor{Name: p.By, Why: p.Why})
}

func (b *book) Reject(_ context.Context, id int64, by ledger.Actor) (ledger.Proposal, error) {
	return b.ended(id, ledger.ProposalRejected, ledger.Rejected, by)
}

func (b *book) CreateJob(_ context.Context, j ledger.Job) (ledger.Job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j.ID, j.State, j.CreatedAt = int64(len(b.jobs)+1), ledger.JobWaiting, now
	j.Matched = int64(len(b.chosen(j.Filter)))
	b.jobs = append(b.jobs, j)
	if b.Two && j.Act == ledger.Closed {
		b.jobs[len(b.jobs)-1].State, j.State = ledger.JobProposed, ledger.JobProposed
	}
	b.note("job %d: %s %s by %s: %s, rate %g, limit %d", j.ID, j.Act, pick.Described(j.Filter), j.Operator, j.Reason, j.Rate, j.Limit)
	return j, nil
}

func (b *book) Job(_ context.Context, id int64) (ledger.Job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 1 || int(id) > len(b.jobs) {
		return ledger.Job{}, ledger.ErrNotFound
	}
	j := &b.jobs[id-1]
	if b.step != nil {
		b.step(j)
	}
	return *j, nil
}

func (b *book) ListJobs(_ context.Context, before int64, n int) ([]ledger.Job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs := slices.DeleteFunc(slices.Clone(b.jobs), func(j ledger.Job) bool { return before > 0 && j.ID >= before })
	slices.Reverse(jobs)
	return jobs[:min(n, len(jobs))], b.fails
}

func (b *book) setJob(id int64, state ledger.JobState, by ledger.Actor) (ledger.Job, error) {
	j, err := b.Job(context.Background(), id)
	if err != nil {
		return j, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs[id-1].State, b.jobs[id-1].Note, b.jobs[id-1].StoppedBy = state, by.Why, by.Name
	b.note("job %d is %s by %s: %s", id, state, by.Name, by.Why)
	return b.jobs[id-1], nil
}

func (b *book) StopJob(_ context.Context, id int64, _ string, by ledger.Actor) (ledger.Job, error) {
	return b.setJob(id, ledger.JobStopped, by)
}

func (b *book) ResumeJob(_ context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	return b.setJob(id, ledger.JobWaiting, by)
}

func (b *book) Desks(context.Context, time.Duration) ([]string, error) { return b.desks, b.fails }

// deadLetters are a few of each kind: seven that failed alike, one that cannot be read, one that was given up, one resolved.
func deadLetters() []ledger.Entry {
	check := envelope.Cause{
		Kind: envelope.Data, Code: "23514", Message: `the row violates a CHECK of the table`, Table: "decision_logs", Constraint: "decision_logs_path_short",
	}
	decode := envelope.Cause{Kind: envelope.Decode, Code: "syntax", Message: "syntax at byte 17"}
	given := envelope.Cause{Kind: envelope.Exhausted, Code: "57014", Message: "the statement took too long"}
	var out []ledger.Entry
	for i := range 7 {
		out = append(out, letter(i, check, ledger.Pending))
	}
	out[5].State, out[5].Attempts, out[5].ChangedBy, out[5].Why = ledger.Failed, 3, "desk desk-1", "dead again for the 3rd time"
	out[6].State, out[6].Owner, out[6].LeaseUntil, out[6].ChangedBy, out[6].Why = ledger.Processing, "desk-1", now.Add(9*time.Minute), "mara", "the check was widened"
	bad := letter(7, decode, ledger.Pending)
	bad.Path, bad.DecisionID, bad.DecisionTime, bad.Value = "", "", time.Time{}, []byte("{\"decision_id\": \x1b[31m\x00 nonsense")
	bad.Origin.Index = envelope.NoIndex
	slow := letter(8, given, ledger.Pending)
	slow.Path = "httpapi/authz/a_rather_long_path_that_no_terminal_of_eighty_columns_has_the_room_for"
	done := letter(9, given, ledger.Resolved)
	done.ChangedBy, done.Why = "mara", "a test of the staging producer"
	return append(out, bad, slow, done)
}

func letter(i int, c envelope.Cause, state ledger.State) ledger.Entry {
	failed := now.Add(-time.Duration(3+i*7) * time.Hour)
	e := ledger.Entry{State: state, SeenAt: failed.Add(2 * time.Second), ChangedAt: failed.Add(2 * time.Second), ChangedBy: "desk desk-1", Why: "read from decision-logs-dlq"}
	e.ID = fmt.Sprintf("%x%062x", 0xa0+i, 0x1234567890ab+i*7919)
	e.Origin = envelope.Origin{Topic: "decision-logs", Partition: int32(i % 3), Offset: int64(12034 + i), Timestamp: failed.Add(-time.Second)}
	e.Found = ledger.Found{Topic: "decision-logs-dlq", Offset: int64(70 + i), Stamp: failed}
	e.Cause, e.FirstFailedAt, e.FailedAt = c, failed, failed
	e.Fingerprint = map[string]string{"23514": "156f3d4672aacc0a", "syntax": "ef2e533e4e210981", "57014": "6b14c3380e1fdf75"}[c.Code]
	e.Path, e.DecisionID, e.DecisionTime = "authz/allow", fmt.Sprintf("d-%04d", i), failed.Add(-2*time.Second)
	e.Key, e.Value = []byte("key\x1b]0;title\a"), fmt.Appendf(nil, `{"decision_id":"d-%04d","labels":{"id":"opa-1"},"path":"authz/allow","timestamp":"2026-11-21T10:00:00Z","input":{"user":"alice"},"result":true}`, i)
	return e
}

var _ frame.Book = (*book)(nil)

func (b *book) Remembered(context.Context, string) (string, time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remembers, now.Add(-3 * time.Minute), b.fails
}

func (b *book) Surplus(_ context.Context, all bool, after int64, n int) ([]ledger.Surplus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.former && after > 0 {
		return nil, ledger.ErrBadPage
	}
	ranges := slices.DeleteFunc(slices.Clone(b.surplus), func(r ledger.Surplus) bool {
		return !all && (r.State != ledger.SurplusOpen || r.ID <= after) || all && after > 0 && r.ID >= after
	})
	if all {
		slices.Reverse(ranges)
	}
	return ranges[:min(n, len(ranges))], b.fails
}

func (b *book) OrderSurplus(_ context.Context, id int64, by ledger.Actor) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.surplus {
		if r := &b.surplus[i]; r.ID == id && r.State == ledger.SurplusOpen && r.OrderedBy == "" {
			r.OrderedBy, r.OrderedWhy, r.OrderedAt = by.Name, by.Why, now
			b.note("range %d is ordered by %s: %s", id, by.Name, by.Why)
			return nil
		}
	}
	return ledger.ErrNotFound
}

// Snoozed counts the letters that are snoozed themselves.
func (b *book) Snoozed(context.Context) (n int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.SnoozedUntil.After(now) {
			n++
		}
	}
	return n, nil
}
