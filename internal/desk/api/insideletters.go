package api

import (
	"context"

	"docket/internal/desk/ledger"
)

// Letters is list-dead-letters.
func (i Inside) Letters(ctx context.Context, c Caller, q ListQuery) (LetterList, error) {
	out, err := ask(ctx, i.s, "list-dead-letters", c, &q, i.s.list)
	if err != nil {
		return LetterList{}, err
	}
	return out.Body, nil
}

// Letter is show-dead-letter.
func (i Inside) Letter(ctx context.Context, c Caller, id string) (Letter, error) {
	out, err := ask(ctx, i.s, "show-dead-letter", c, &IDPath{id}, i.s.show)
	if err != nil {
		return Letter{}, err
	}
	return out.Body, nil
}

// LetterPayload is show-payload: it is logged with the caller's name.
func (i Inside) LetterPayload(ctx context.Context, c Caller, id string) (Payload, error) {
	out, err := ask(ctx, i.s, "show-payload", c, &IDPath{id}, i.s.payload)
	if err != nil {
		return Payload{}, err
	}
	return out.Body, nil
}

// History is show-history.
func (i Inside) History(ctx context.Context, c Caller, id string) (History, error) {
	out, err := ask(ctx, i.s, "show-history", c, &historyInput{IDPath: IDPath{id}}, i.s.history)
	if err != nil {
		return History{}, err
	}
	return out.Body, nil
}

// Groups is list-groups, with all of them.
func (i Inside) Groups(ctx context.Context, c Caller, q FilterQuery) (Groups, error) {
	out, err := ask(ctx, i.s, "list-groups", c, &groupsInput{FilterQuery: q}, i.s.groups)
	if err != nil {
		return Groups{}, err
	}
	return out.Body, nil
}

// Classify is classify.
func (i Inside) Classify(ctx context.Context, c Caller, code string) (Verdict, error) {
	out, err := ask(ctx, i.s, "classify", c, &codePath{code}, i.s.classify)
	if err != nil {
		return Verdict{}, err
	}
	return out.Body, nil
}

// Try is try-dead-letters for a filter of the ledger.
func (i Inside) Try(ctx context.Context, c Caller, f ledger.Filter) (TrialResult, error) {
	shown := filterOf(f)
	out, err := ask(ctx, i.s, "try-dead-letters", c, &trialInput{TrialRequest{Filter: &shown}}, i.s.try)
	if err != nil {
		return TrialResult{}, err
	}
	return out.Body, nil
}

// Resolve is resolve-dead-letter.
func (i Inside) Resolve(ctx context.Context, c Caller, id, note string) (Moved, error) {
	out, err := ask(ctx, i.s, "resolve-dead-letter", c, &resolveInput{IDPath{id}, ResolveRequest{note}}, i.s.resolve)
	if err != nil {
		return Moved{}, err
	}
	return out.Body, nil
}

// Retry is retry-dead-letter.
func (i Inside) Retry(ctx context.Context, c Caller, id, reason string) (Moved, error) {
	out, err := ask(ctx, i.s, "retry-dead-letter", c, &retryInput{IDPath{id}, RetryRequest{reason}}, i.s.retry)
	if err != nil {
		return Moved{}, err
	}
	return out.Body, nil
}

// CreateJob is create-job.
func (i Inside) CreateJob(ctx context.Context, c Caller, j JobRequest) (Job, error) {
	return i.job(ctx, c, "create-job", func(ctx context.Context, c caller) (*jobOutput, error) {
		return i.s.createJob(ctx, c, &jobInput{j})
	})
}

// Job is show-job.
func (i Inside) Job(ctx context.Context, c Caller, id int64) (Job, error) {
	return i.job(ctx, c, "show-job", func(ctx context.Context, c caller) (*jobOutput, error) {
		return i.s.showJob(ctx, c, &JobPath{id})
	})
}

// StopJob is stop-job.
func (i Inside) StopJob(ctx context.Context, c Caller, id int64, reason string) (Job, error) {
	return i.job(ctx, c, "stop-job", func(ctx context.Context, c caller) (*jobOutput, error) {
		return i.s.stopJob(ctx, c, &jobReasonInput{JobPath{id}, RetryRequest{reason}})
	})
}

// ResumeJob is resume-job.
func (i Inside) ResumeJob(ctx context.Context, c Caller, id int64, reason string) (Job, error) {
	return i.job(ctx, c, "resume-job", func(ctx context.Context, c caller) (*jobOutput, error) {
		return i.s.resumeJob(ctx, c, &jobReasonInput{JobPath{id}, RetryRequest{reason}})
	})
}

func (i Inside) job(ctx context.Context, c Caller, operation string, do func(context.Context, caller) (*jobOutput, error)) (Job, error) {
	out, err := ask(ctx, i.s, operation, c, &nothing{}, func(ctx context.Context, c caller, _ *nothing) (*jobOutput, error) { return do(ctx, c) })
	if err != nil {
		return Job{}, err
	}
	return out.Body, nil
}

// Jobs is list-jobs.
func (i Inside) Jobs(ctx context.Context, c Caller, after string, most int) (JobList, error) {
	out, err := ask(ctx, i.s, "list-jobs", c, &jobsInput{after, most}, i.s.listJobs)
	if err != nil {
		return JobList{}, err
	}
	return out.Body, nil
}
