package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"docket/internal/desk/ledger"
)

// JobAct is the act of a job on each dead letter.
type JobAct string

// The acts of jobs.
const (
	JobRetries  JobAct = "retry"
	JobResolves JobAct = "resolve"
)

func (a JobAct) ledger() ledger.Act {
	if a == JobResolves {
		return ledger.Closed
	}
	return ledger.Retried
}

func jobActOf(a ledger.Act) JobAct {
	if a == ledger.Closed {
		return JobResolves
	}
	return JobRetries
}

// JobRequest creates a job.
type JobRequest struct {
	Act    JobAct  `json:"act" enum:"retry,resolve"`
	Filter Filter  `json:"filter"`
	All    bool    `json:"all,omitempty" doc:"Required where the filter is empty and so chooses everything"`
	Rate   float64 `json:"rate,omitempty" minimum:"0" maximum:"1000000" doc:"Letters a second; 0: as fast as it goes"`
	Limit  int64   `json:"limit,omitempty" minimum:"0" maximum:"1000000000" doc:"Most letters; 0: no limit, which only an admin may ask for"`
	Reason string  `json:"reason" minLength:"1" maxLength:"1000" pattern:"\\S" doc:"Why, for the audit"`
}

// Job is an operation on many dead letters.
type Job struct {
	ID         int64           `json:"id"`
	Act        JobAct          `json:"act" enum:"retry,resolve"`
	Filter     Filter          `json:"filter"`
	Rate       float64         `json:"rate"`
	Limit      int64           `json:"limit"`
	State      ledger.JobState `json:"state" enum:"PROPOSED,WAITING,RUNNING,STOPPED,DONE" doc:"PROPOSED: it waits for a second person"`
	Operator   string          `json:"operator"`
	Reason     string          `json:"reason"`
	Matched    int64           `json:"matched" doc:"When it was made"`
	Sent       int64           `json:"sent" doc:"Moved by it so far"`
	Stored     int64           `json:"stored"`
	Dead       int64           `json:"dead"`
	Refused    int64           `json:"refused"`
	Open       int64           `json:"open" doc:"Retries of it that have not ended"`
	CreatedAt  time.Time       `json:"created_at"`
	StartedAt  *time.Time      `json:"started_at,omitempty"`
	EndedAt    *time.Time      `json:"ended_at,omitempty"`
	Note       string          `json:"note,omitempty" doc:"Its present work, or why it stopped"`
	StoppedBy  string          `json:"stopped_by,omitempty"`
	Owner      string          `json:"owner,omitempty" doc:"The desk that works on it"`
	ApprovedBy string          `json:"approved_by,omitempty" doc:"The second person, where one was needed"`
}

func jobOf(j ledger.Job) Job {
	return Job{ID: j.ID, Act: jobActOf(j.Act), Filter: filterOf(j.Filter), Rate: j.Rate, Limit: j.Limit, State: j.State, Operator: j.Operator,
		Reason: j.Reason, Matched: j.Matched, Sent: j.Sent, Stored: j.Stored, Dead: j.Dead, Refused: j.Refused, Open: j.Open(),
		CreatedAt: j.CreatedAt.UTC(), StartedAt: moment(j.StartedAt), EndedAt: moment(j.EndedAt), Note: j.Note, StoppedBy: j.StoppedBy, Owner: j.Owner, ApprovedBy: j.ApprovedBy}
}

// JobList is a part of the list of jobs, the newest first.
type JobList struct {
	Jobs []Job  `json:"jobs" nullable:"false"`
	Next string `json:"next,omitempty" doc:"Give it as after to get the next page; it is missing on the last page"`
}

type jobInput struct{ Body JobRequest }

// JobPath names a job.
type JobPath struct {
	ID int64 `path:"id" minimum:"1"`
}
type jobReasonInput struct {
	JobPath
	Body RetryRequest
}
type jobsInput struct {
	After string `query:"after" maxLength:"512" doc:"The next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}
type jobOutput struct{ Body Job }
type jobsOutput struct{ Body JobList }

func (s *api) jobs() {
	register(s, route{role: Operator, method: http.MethodPost, path: "/jobs", id: "create-job", status: http.StatusCreated,
		summary: "Retry or resolve many dead letters",
		text:    fmt.Sprintf("A desk takes it. Without a limit, or above %d letters, it needs the role admin. POST /trials says beforehand what would come of a retry. With DOCKET_DESK_FOUR_EYES another person approves one that resolves.", s.OperatorLimit)}, s.createJob)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/jobs", id: "list-jobs", summary: "List jobs, the newest first"}, s.listJobs)
	register(s, route{role: Viewer, method: http.MethodGet, path: "/jobs/{id}", id: "show-job", summary: "Show a job",
		errors: []int{http.StatusNotFound}}, s.showJob)
	register(s, route{role: Operator, method: http.MethodPost, path: "/jobs/{id}/stop", id: "stop-job", summary: "Stop a job",
		text: "What it has moved stays moved. It can be resumed.", errors: refusals}, s.stopJob)
	register(s, route{role: Operator, method: http.MethodPost, path: "/jobs/{id}/resume", id: "resume-job", summary: "Resume a job that stopped",
		text: "A job that runs already keeps running. If only an admin could have started the job, only an admin can resume it.", errors: refusals}, s.resumeJob)
}

func (s *api) createJob(ctx context.Context, c caller, in *jobInput) (*jobOutput, error) {
	b := in.Body
	if b.Filter.all() != b.All {
		return nil, faulty("body.all", "true where the filter is empty, and only there")
	}
	if err := s.within(c, b.Limit); err != nil {
		return nil, err
	}
	by, err := actor(c, "body.reason", b.Reason)
	if err != nil {
		return nil, err
	}
	j, err := s.Book.CreateJob(ctx, ledger.Job{Act: b.Act.ledger(), Filter: b.Filter.ledger(), Rate: b.Rate, Limit: b.Limit,
		Operator: by.Name, Reason: by.Why, Vouched: by.Vouched})
	return s.job(c, "made", j, speaks(err))
}

// within returns a problem if the caller may not start a job of this limit.
func (s *api) within(c caller, limit int64) error {
	if c.Role >= Admin || limit >= 1 && limit <= s.OperatorLimit {
		return nil
	}
	return problem(http.StatusForbidden, fmt.Sprintf("a job without a limit, or with one above %d, needs the role admin", s.OperatorLimit),
		"give a limit, or ask an admin")
}

func (s *api) stopJob(ctx context.Context, c caller, in *jobReasonInput) (*jobOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	j, err := s.Book.StopJob(ctx, in.ID, by.Why, by)
	if err == nil && j.State != ledger.JobStopped {
		err = wrongJobState(j, "only one that waits or runs can be stopped")
	}
	return s.job(c, "stopped", j, err)
}

func (s *api) resumeJob(ctx context.Context, c caller, in *jobReasonInput) (*jobOutput, error) {
	by, err := actor(c, "body.reason", in.Body.Reason)
	if err != nil {
		return nil, err
	}
	j, err := s.Book.Job(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.within(c, j.Limit); err != nil {
		return nil, err
	}
	j, err = s.Book.ResumeJob(ctx, in.ID, by)
	if err == nil && j.State != ledger.JobWaiting && j.State != ledger.JobRunning && j.State != ledger.JobProposed {
		err = wrongJobState(j, "only one that is STOPPED can be resumed; make another")
	}
	return s.job(c, "resumed", j, err)
}

// wrongJobState is the problem of a job whose state does not allow the request. The ledger leaves such a job unchanged.
func wrongJobState(j ledger.Job, hint string) *Problem {
	p := problem(http.StatusConflict, "the job is "+string(j.State)+" and was not changed", hint)
	p.ID, p.State, p.By, p.Since = strconv.FormatInt(j.ID, 10), string(j.State), j.StoppedBy, moment(j.EndedAt)
	return p
}

func (s *api) job(c caller, what string, j ledger.Job, err error) (*jobOutput, error) {
	if err != nil {
		return nil, err
	}
	s.log.Info().Str("operator", c.Name).Int64("job", j.ID).Str("act", what).Msg("job changed by API")
	return &jobOutput{jobOf(j)}, nil
}

func (s *api) showJob(ctx context.Context, _ caller, in *JobPath) (*jobOutput, error) {
	j, err := s.Book.Job(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &jobOutput{jobOf(j)}, nil
}

func (s *api) listJobs(ctx context.Context, _ caller, in *jobsInput) (*jobsOutput, error) {
	before, err := ledger.NumberAfter(in.After)
	if err != nil {
		return nil, err
	}
	found, err := s.Book.ListJobs(ctx, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	found, next := ledger.NextNumber(found, in.Limit, func(j ledger.Job) int64 { return j.ID })
	out := &jobsOutput{JobList{make([]Job, 0, len(found)), next}}
	for _, j := range found {
		out.Body.Jobs = append(out.Body.Jobs, jobOf(j))
	}
	return out, nil
}
