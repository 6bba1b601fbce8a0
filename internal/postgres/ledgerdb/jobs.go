package ledgerdb

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
)

var _ ledger.Jobs = (*Ledger)(nil)

// jobSQL are the columns of a job, of dead_letter_jobs j. Counters have how its retries ended.
const jobSQL = `j.job_id, j.act, j.filter::text, j.rate, j.most, j.state, j.operator, j.reason, j.matched, j.sent, ends.stored, ends.dead, ends.refused,
	j.created_at, j.started_at, j.ended_at, j.note, j.stopped_by, coalesce(j.owner, ''), j.vouched, coalesce(j.approved_by, '')`

// endsSQL sums up how the retries of job j ended. One that was withdrawn was never published and counts as refused.
const endsSQL = ` CROSS JOIN LATERAL (SELECT coalesce(sum(e.n) FILTER (WHERE e.outcome = 'stored'), 0)::bigint AS stored,
	coalesce(sum(e.n) FILTER (WHERE e.outcome = 'dead'), 0)::bigint AS dead,
	coalesce(sum(e.n) FILTER (WHERE e.outcome IN ('refused', 'withdrawn')), 0)::bigint AS refused FROM dead_letter_job_ends e WHERE e.job_id = j.job_id) ends`

func scanJob(r pgx.CollectableRow) (j ledger.Job, err error) {
	var filter string
	var started, ended *time.Time
	if err := r.Scan(&j.ID, &j.Act, &filter, &j.Rate, &j.Limit, &j.State, &j.Operator, &j.Reason, &j.Matched, &j.Sent, &j.Stored, &j.Dead, &j.Refused,
		&j.CreatedAt, &started, &ended, &j.Note, &j.StoppedBy, &j.Owner, &j.Vouched, &j.ApprovedBy); err != nil {
		return j, err
	}
	j.CreatedAt, j.StartedAt, j.EndedAt = j.CreatedAt.UTC(), utc(started), utc(ended)
	if json.Unmarshal([]byte(filter), &j.Filter) != nil {
		return j, &db.AnswerError{Problem: "the filter of a job is not as it is written"}
	}
	return j, nil
}

// jobs asks for jobs; where follows the tables, or the statement that changes them.
func jobs(ctx context.Context, tx pgx.Tx, from, where string, args ...any) ([]ledger.Job, error) {
	rows, err := tx.Query(ctx, `SELECT `+jobSQL+` FROM `+from+` j`+endsSQL+` `+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanJob)
}

// changed makes a change and gives the one job that it returns; otherwise where there is none.
func changed(ctx context.Context, tx pgx.Tx, otherwise error, change string, args ...any) (ledger.Job, error) {
	found, err := changedJobs(ctx, tx, change, args...)
	switch {
	case err != nil:
		return ledger.Job{}, err
	case len(found) == 0:
		return ledger.Job{}, otherwise
	}
	return found[0], nil
}

func changedJobs(ctx context.Context, tx pgx.Tx, change string, args ...any) ([]ledger.Job, error) {
	rows, err := tx.Query(ctx, `WITH changed AS (`+change+` RETURNING *) SELECT `+jobSQL+` FROM changed j`+endsSQL, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanJob)
}

// CreateJob writes down what is to be done with all that match now. Its filter's states are those of PENDING and FAILED
// that it names, or both.
func (l *Ledger) CreateJob(ctx context.Context, j ledger.Job) (made ledger.Job, err error) {
	if err := errors.Join(j.Filter.Validate(), askedFor(j)); err != nil {
		return made, err
	}
	filter, err := json.Marshal(j.Filter)
	if err != nil {
		return made, err
	}
	matching := j.Filter
	if matching.States = movable(j.Filter.States); len(matching.States) == 0 {
		return made, &ledger.InvalidError{Field: "states", Problem: "only PENDING and FAILED dead letters can be moved"}
	}
	err = l.within(ctx, "write down a job", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		counts, err := l.countsIn(ctx, tx, matching)
		if err != nil {
			return err
		}
		made, err = changed(ctx, tx, ledger.ErrNotFound, `INSERT INTO dead_letter_jobs (act, filter, rate, most, operator, reason, matched, vouched)
			VALUES ($1, $2::jsonb, $3, $4, $5, $6, $7, $8)`, string(j.Act), string(filter), j.Rate, j.Limit, j.Operator, j.Reason, counts[ledger.Pending]+counts[ledger.Failed], j.Vouched)
		return err
	})
	return made, err
}

// askedFor says what is missing of a job.
func askedFor(j ledger.Job) error {
	problem := func(field, text string) error { return &ledger.InvalidError{Field: field, Problem: text} }
	switch {
	case j.Operator == "":
		return problem("operator", "say who asks for it")
	case j.Reason == "":
		return problem("reason", "say why")
	case j.Act != ledger.Retried && j.Act != ledger.Closed:
		return problem("act", "a job retries or resolves")
	case j.Filter.Snoozed != ledger.SnoozedToo || j.Filter.Assigned != "":
		return problem("filter", "a job takes no choice by snooze or person")
	case !(j.Rate >= 0) || j.Rate > 1e9: // NaN is neither
		return problem("rate", "give dead letters a second, 0 for as fast as it goes")
	case j.Limit < 0:
		return problem("limit", "give a number of dead letters, 0 for all")
	}
	return nil
}

// movable are those of states that a person can move on; none named: all of these.
func movable(states []ledger.State) (of []ledger.State) {
	for _, s := range []ledger.State{ledger.Pending, ledger.Failed} {
		if len(states) == 0 || slices.Contains(states, s) {
			of = append(of, s)
		}
	}
	return of
}

// Job finds one.
func (l *Ledger) Job(ctx context.Context, id int64) (j ledger.Job, err error) {
	err = l.look(ctx, "look up a job", func(ctx context.Context, tx pgx.Tx) error {
		j, err = jobIn(ctx, tx, id)
		return err
	})
	return j, err
}

func jobIn(ctx context.Context, tx pgx.Tx, id int64) (ledger.Job, error) {
	found, err := jobs(ctx, tx, "dead_letter_jobs", "WHERE j.job_id = $1", id)
	if err == nil && len(found) == 0 {
		err = ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Job{}, err
	}
	return found[0], nil
}

// ListJobs lists the newest n of those with a number below before; 0: of all.
func (l *Ledger) ListJobs(ctx context.Context, before int64, n int) (found []ledger.Job, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	err = l.look(ctx, "list jobs", func(ctx context.Context, tx pgx.Tx) error {
		found, err = jobs(ctx, tx, "(SELECT * FROM dead_letter_jobs WHERE job_id < $1 ORDER BY job_id DESC LIMIT $2)", "ORDER BY j.job_id DESC", before, max(n, 0))
		return err
	})
	return found, err
}

// StopJob stops a job that has not ended. One that is stopped or done stays as it is.
func (l *Ledger) StopJob(ctx context.Context, id int64, why string, by ledger.Actor) (ledger.Job, error) {
	return l.turnJob(ctx, "stop a job", id, by, `UPDATE dead_letter_jobs SET state = 'STOPPED', stopped_by = $2, note = $3, ended_at = clock_timestamp(),
		owner = NULL, lease_until = NULL WHERE job_id = $1 AND state IN ('PROPOSED', 'WAITING', 'RUNNING')`, id, by.Name, why)
}

// ResumeJob lets a STOPPED job wait for a desk again. It adds the person and the reason to the job's reason, which the audit
// of each letter gets. A job that is WAITING, RUNNING or DONE stays as it is.
func (l *Ledger) ResumeJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	return l.turnJob(ctx, "resume a job", id, by, `UPDATE dead_letter_jobs SET state = CASE WHEN proposed AND approved_by IS NULL THEN 'PROPOSED' ELSE 'WAITING' END, note = 'resumed by ' || $2::text, stopped_by = '',
		reason = reason || '; resumed by ' || $2::text || CASE $3::text WHEN '' THEN '' ELSE ': ' || $3 END,
		ended_at = NULL, owner = NULL, lease_until = NULL WHERE job_id = $1 AND state = 'STOPPED'`, id, by.Name, by.Why)
}

func (l *Ledger) turnJob(ctx context.Context, act string, id int64, by ledger.Actor, change string, args ...any) (j ledger.Job, err error) {
	if by.Name == "" {
		return j, &ledger.InvalidError{Field: "operator", Problem: "say who asks for it"}
	}
	err = l.within(ctx, act, pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		j, err = changed(ctx, tx, ledger.ErrNotFound, change, args...)
		if errors.Is(err, ledger.ErrNotFound) {
			j, err = jobIn(ctx, tx, id)
		}
		return err
	})
	return j, err
}

// TakeJob takes the oldest that waits or was left behind.
func (l *Ledger) TakeJob(ctx context.Context, holder string, lease time.Duration) (j ledger.Job, err error) {
	err = l.within(ctx, "take a job", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		j, err = changed(ctx, tx, ledger.ErrNotFound, `UPDATE dead_letter_jobs SET state = 'RUNNING', owner = $1, lease_until = clock_timestamp() + $2 * interval '1 microsecond',
			started_at = coalesce(started_at, clock_timestamp()) WHERE job_id = (
				SELECT job_id FROM dead_letter_jobs WHERE state = 'WAITING' OR state = 'RUNNING' AND lease_until < clock_timestamp()
				ORDER BY job_id LIMIT 1 FOR UPDATE SKIP LOCKED)`, holder, lease.Microseconds())
		return err
	})
	return j, err
}

// KeepJob renews the lease, also one that ended where nobody took the job over.
func (l *Ledger) KeepJob(ctx context.Context, id int64, holder, note string, lease time.Duration) (j ledger.Job, err error) {
	err = l.within(ctx, "keep a job", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		j, err = changed(ctx, tx, ledger.ErrLost, `UPDATE dead_letter_jobs SET note = $3, lease_until = clock_timestamp() + $4 * interval '1 microsecond'
			WHERE job_id = $1 AND owner = $2 AND state = 'RUNNING'`, id, holder, note, lease.Microseconds())
		return err
	})
	return j, err
}

// EndJob ends a job of holder's.
func (l *Ledger) EndJob(ctx context.Context, id int64, holder string, state ledger.JobState, note string) error {
	if state != ledger.JobDone && state != ledger.JobStopped {
		return &ledger.InvalidError{Field: "state", Problem: "a job ends as DONE or STOPPED"}
	}
	return l.within(ctx, "end a job", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) error {
		_, err := changed(ctx, tx, ledger.ErrLost, `UPDATE dead_letter_jobs SET state = $3, note = $4, ended_at = clock_timestamp(), owner = NULL, lease_until = NULL,
			stopped_by = CASE WHEN $3 = 'STOPPED' THEN $2 ELSE stopped_by END WHERE job_id = $1 AND owner = $2 AND state = 'RUNNING'`, id, holder, string(state), note)
		return err
	})
}

// FirstEnds are the retries of a job that ended first, the first one first.
func (l *Ledger) FirstEnds(ctx context.Context, id int64, n int) (ends []ledger.Sending, err error) {
	err = l.look(ctx, "look at the first retries of a job", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+sentSQL+` FROM dead_letter_outbox o WHERE o.job_id = $1 AND o.ended_at IS NOT NULL
			ORDER BY o.ended_at, o.outbox_id LIMIT $2`, id, max(n, 0))
		if err != nil {
			return err
		}
		ends, err = pgx.CollectRows(rows, scanRetry)
		return err
	})
	return ends, err
}
