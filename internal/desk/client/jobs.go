package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/record/decision"
)

func jobOf(j api.Job) ledger.Job {
	act := ledger.Retried
	if j.Act == api.JobResolves {
		act = ledger.Closed
	}
	return ledger.Job{
		ID: j.ID, Act: act, Filter: chosen(j.Filter), Rate: j.Rate, Limit: j.Limit, State: j.State, Operator: j.Operator, Reason: j.Reason, Matched: j.Matched, Sent: j.Sent,
		Stored: j.Stored, Dead: j.Dead, Refused: j.Refused, CreatedAt: j.CreatedAt, StartedAt: at(j.StartedAt), EndedAt: at(j.EndedAt), Note: j.Note, StoppedBy: j.StoppedBy, Owner: j.Owner, ApprovedBy: j.ApprovedBy,
	}
}

// CreateJob has a desk move many dead letters.
func (b Book) CreateJob(ctx context.Context, j ledger.Job) (ledger.Job, error) {
	if err := b.by(ctx, ledger.Actor{Name: j.Operator}); err != nil {
		return ledger.Job{}, err
	}
	act := api.JobRetries
	if j.Act == ledger.Closed {
		act = api.JobResolves
	}
	return b.job(ctx, post("/jobs", api.JobRequest{Act: act, Filter: filterOf(j.Filter), Rate: j.Rate, Limit: j.Limit, Reason: j.Reason}))
}

func (b Book) job(ctx context.Context, r request) (ledger.Job, error) {
	var j api.Job
	err := b.client.ask(ctx, r, &j)
	return jobOf(j), err
}

// Job asks for a job.
func (b Book) Job(ctx context.Context, id int64) (ledger.Job, error) {
	j, err := b.job(ctx, get("/jobs/"+strconv.FormatInt(id, 10), nil))
	if problemOf(err, http.StatusNotFound) != nil {
		err = ledger.ErrNotFound
	}
	return j, err
}

// ListJobs asks for the newest jobs below a number.
func (b Book) ListJobs(ctx context.Context, before int64, n int) ([]ledger.Job, error) {
	var list api.JobList
	if err := b.client.ask(ctx, get("/jobs", numbered(before, n)), &list); err != nil {
		return nil, unpaged(err)
	}
	var all []ledger.Job
	for _, j := range list.Jobs {
		all = append(all, jobOf(j))
	}
	return all, nil
}

// unpaged says of a desk that takes no page, as it is older than this program, that the page is wrong.
func unpaged(err error) error {
	if faultAt(err, "query.after") {
		return errors.Join(ledger.ErrBadPage, err)
	}
	return err
}

// numbered asks for a page of a list that is ordered by numbers.
func numbered(before int64, n int) url.Values {
	q := url.Values{"limit": {strconv.Itoa(n)}}
	if before > 0 {
		q.Set("after", strconv.FormatInt(before, 10))
	}
	return q
}

// StopJob stops a job. One that has ended is returned as it is.
func (b Book) StopJob(ctx context.Context, id int64, why string, by ledger.Actor) (ledger.Job, error) {
	return b.turn(ctx, id, "/stop", why, by)
}

// ResumeJob resumes a job. One that is not stopped is returned as it is.
func (b Book) ResumeJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	return b.turn(ctx, id, "/resume", by.Why, by)
}

func (b Book) turn(ctx context.Context, id int64, act, why string, by ledger.Actor) (ledger.Job, error) {
	if err := b.by(ctx, by); err != nil {
		return ledger.Job{}, err
	}
	j, err := b.job(ctx, post("/jobs/"+strconv.FormatInt(id, 10)+act, api.RetryRequest{Reason: why}))
	switch p := problemOf(err, http.StatusNotFound, http.StatusConflict); {
	case p == nil:
		return j, err
	case p.Status == http.StatusNotFound:
		return j, ledger.ErrNotFound
	}
	return b.Job(ctx, id) // the ledger answers so, too
}

// Desks asks which desks run.
func (b Book) Desks(ctx context.Context, within time.Duration) ([]string, error) {
	var w api.Watchers
	err := b.client.ask(ctx, get("/desks", url.Values{"within": {strconv.Itoa(int(within / time.Second))}}), &w)
	return w.Desks, older(err)
}

// Backlog asks for the dead letters that no desk has entered.
func (c *Client) Backlog(ctx context.Context) (worker.Backlog, error) {
	var w api.Watchers
	err := c.ask(ctx, get("/desks", url.Values{"backlog": {flag}}), &w)
	switch {
	case err != nil:
		return worker.Backlog{}, older(err)
	case w.NotEntered != nil && w.Lost != nil:
		return worker.Backlog{Records: *w.NotEntered, Gone: *w.Lost}, nil
	case w.AtLeast != nil:
		return worker.Backlog{Records: *w.AtLeast}, errUnknownBacklog
	}
	return worker.Backlog{}, errUnknownBacklog
}

var errUnknownBacklog = errors.New("the desk does not know what is not entered")

// Surplus asks for ranges of dead letters that stay in Kafka, at most 1,000.
func (b Book) Surplus(ctx context.Context, all bool, after int64, n int) ([]ledger.Surplus, error) {
	q := numbered(after, min(n, 1000))
	if all {
		q.Set("all", flag)
	}
	var list api.SurplusList
	if err := b.client.ask(ctx, get("/surplus", q), &list); err != nil {
		return nil, unpaged(older(err))
	}
	var out []ledger.Surplus
	for _, r := range list.Ranges {
		out = append(out, ledger.Surplus{
			ID: r.ID, Topic: r.Topic, Partition: r.Partition, Client: r.Client, Hour: r.Hour, First: r.First, Last: r.Last, Next: r.Next, Letters: r.Letters, Entered: r.Entered,
			Archived: r.Archived, Lost: r.Lost, FirstAt: r.FirstAt, LastAt: r.LastAt, LeftAt: r.LeftAt, State: r.State, ClosedAt: at(r.ClosedAt), ArchivedFrom: r.ArchivedFrom,
			ArchivedIn: r.ArchivedIn, OrderedBy: r.OrderedBy, OrderedWhy: r.OrderedWhy, OrderedAt: at(r.OrderedAt), Growth: r.Growth,
		})
	}
	return out, nil
}

// OrderSurplus has a desk enter a range.
func (b Book) OrderSurplus(ctx context.Context, id int64, by ledger.Actor) error {
	if err := b.by(ctx, by); err != nil {
		return err
	}
	var o api.Ordered
	return ofLetter(b.client.ask(ctx, post("/surplus/"+strconv.FormatInt(id, 10)+"/order", api.RetryRequest{Reason: by.Why}), &o))
}

// Horizon asks when Kafka deletes what is still needed. The desk does not say why a topic is unknown; its log does.
func (c *Client) Horizon(ctx context.Context, now time.Time) ([]worker.HorizonLine, error) {
	var r api.Report
	if err := c.ask(ctx, get("/report", nil), &r); err != nil {
		return nil, err
	}
	var lines []worker.HorizonLine
	for _, l := range r.Horizon {
		line := worker.HorizonLine{
			Topic: l.Topic, Parked: l.Parked, Lane: l.Lane, Oldest: at(l.Oldest), Unread: l.Unread, OldestUnread: at(l.OldestUnread), Gone: l.Gone, RetentionKnown: l.Retention, Forever: l.Forever,
			RetentionSeconds: l.RetentionFor, BytesLimited: l.BytesLimited, Deadline: at(l.Deadline), LossAt: at(l.LossAt), LeftSeconds: l.LeftSeconds, Used: l.Used,
		}
		if !l.Known {
			line.Error = "the desk could not look at it, and its log says why"
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// Trial is the dry run of a desk.
type Trial struct{ client *Client }

// Trial returns the dry run of the desk.
func (c *Client) Trial() Trial { return Trial{c} }

// Run tries the dead letters of a filter: at most limit, and without one as many as the desk allows.
func (t Trial) Run(ctx context.Context, f ledger.Filter, limit int64, progress func(done, total int64)) (worker.TrialResult, error) {
	filter := filterOf(f)
	return t.try(ctx, api.TrialRequest{Filter: &filter, Limit: limit}, progress)
}

// RunIDs tries dead letters.
func (t Trial) RunIDs(ctx context.Context, ids []string, progress func(done, total int64)) (worker.TrialResult, error) {
	return t.try(ctx, api.TrialRequest{IDs: ids}, progress)
}

// RunValue tries a payload.
func (t Trial) RunValue(ctx context.Context, value []byte) (worker.TrialResult, error) {
	text, bytes := sent(value)
	return t.try(ctx, api.TrialRequest{Payload: text, Base64: bytes}, nil)
}

func (t Trial) try(ctx context.Context, body api.TrialRequest, progress func(done, total int64)) (worker.TrialResult, error) {
	r := post("/trials", body)
	r.long = true
	var out api.TrialResult
	if err := t.client.ask(ctx, r, &out); err != nil {
		return worker.TrialResult{}, err
	}
	if progress != nil {
		progress(out.Total, out.Total)
	}
	result := worker.TrialResult{Total: out.Total, Would: out.WouldBeStored, There: out.StoredAlready}
	for _, f := range out.Failures {
		switch reason := decision.Reason(f.Code); {
		case f.Code == "id_conflict":
			result.Conflict += f.Letters
		case decision.IsReason(reason):
			if result.Undecodable == nil {
				result.Undecodable = map[decision.Reason]int64{}
			}
			result.Undecodable[reason] += f.Letters
		default:
			result.StillFail = append(result.StillFail, worker.TrialFault{Code: f.Code, Constraint: f.Constraint, Column: f.Column, Letters: f.Letters})
		}
	}
	if out.Unwell != "" {
		result.Unwell = &worker.TrialUnwell{Code: out.Unwell, Hint: out.Hint}
	}
	return result, nil
}
