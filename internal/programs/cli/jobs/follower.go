package jobs

import (
	"context"
	"fmt"
	"strings"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
)

func (f Follower) show(j ledger.Job) {
	if f.AsJSON {
		f.Print(jobOf(j))
		return
	}
	now := f.Now()
	f.Say("%s %d, %s\n", f.Paint(term.Bold, "Job"), j.ID, f.PaintState(string(j.State)))
	f.Field("task", Verbs[j.Act].Name+" "+pick.Which(j.Filter)+limits(j))
	f.Field("created by", term.Brief(j.Operator)+": "+j.Reason)
	f.Field("approved by", term.Brief(j.ApprovedBy))
	f.Field("done", term.Grouped(j.Sent)+" of "+term.Grouped(target(j)))
	if j.Act == ledger.Retried {
		f.Field("results", tally(j))
	}
	f.Field("created", term.Moment(j.CreatedAt, now))
	if !j.StartedAt.IsZero() {
		f.Field("started", term.Moment(j.StartedAt, now))
	}
	if !j.EndedAt.IsZero() {
		f.Field("ended", term.Moment(j.EndedAt, now))
	}
	f.Field("desk", term.Brief(j.Owner))
	f.Field("stopped by", term.Brief(j.StoppedBy))
	f.Field("note", j.Note)
	f.Actions(jobActions(j, f.OperatorFlag()))
}

func limits(j ledger.Job) string {
	text := Paced(j.Rate)
	if j.Limit > 0 {
		text += ", at most " + term.Grouped(j.Limit)
	}
	return text
}

// tally is how a job's retries ended.
func tally(j ledger.Job) string {
	return fmt.Sprintf("%s stored, %s failed again, %s not sent, %s in progress", term.Grouped(j.Stored), term.Grouped(j.Dead), term.Grouped(j.Refused), term.Grouped(underWay(j)))
}

// brief is the tally of a job without zeros, for the narrow space beside a bar.
func brief(j ledger.Job) string {
	var said []string
	for _, part := range []struct {
		n    int64
		what string
	}{{j.Stored, "stored"}, {j.Dead, "failed"}, {j.Refused, "not sent"}} {
		if part.n > 0 {
			said = append(said, term.Grouped(part.n)+" "+part.what)
		}
	}
	return strings.Join(said, ", ")
}

func jobActions(j ledger.Job, operator string) []term.Action {
	id := fmt.Sprint(j.ID)
	switch j.State {
	case ledger.JobProposed:
		return []term.Action{{Text: "approve it, as another person", Command: term.Join("docket jobs approve", id, operator, "--reason '...'")}, {Text: "stop it", Command: term.Join("docket jobs stop", id, operator, "--reason '...'")}}
	case ledger.JobWaiting, ledger.JobRunning:
		return []term.Action{{Text: "follow it", Command: "docket jobs show " + id + " --watch"}, {Text: "stop it (retries in progress continue)", Command: term.Join("docket jobs stop", id, operator, "--reason '...'")}}
	case ledger.JobStopped:
		return []term.Action{
			{Text: "test whether the rest would be stored now", Command: term.Join("docket dlq retry", pick.Chosen(j.Filter), "--dry-run")},
			{Text: "see the causes", Command: term.Join("docket dlq groups", strings.Join(pick.Words(j.Filter), " "))},
			{Text: "resume it", Command: term.Join("docket jobs resume", id, operator)},
		}
	}
	return []term.Action{{Text: "see what is still open", Command: term.Join("docket dlq list", strings.Join(pick.Words(j.Filter), " "))}}
}

// Follower shows a job and follows it.
type Follower struct{ frame.Call }

// Watch follows a job to its end. After a signal the job continues without this command.
func (f Follower) Watch(ctx context.Context, job ledger.Job, wait, detach bool) error {
	there, err := Running(ctx, f.Call)
	if err != nil {
		return err
	}
	if over(job) || detach || !there && !wait {
		return f.left(job, false)
	}
	p := f.Progress(fmt.Sprintf("job %d", job.ID))
	for !over(job) {
		p.Brief = brief(job)
		p.At(progressOf(job), target(job), tally(job))
		if !frame.Sleep(ctx, frame.LookEvery) {
			p.End()
			return f.left(job, true)
		}
		next, err := f.Sys.Book.Job(ctx, job.ID)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			p.End()
			f.Tell("the job continues; to follow it again: docket jobs show %d --watch\n", job.ID)
			return fmt.Errorf("look at job %d: %w", job.ID, err)
		default:
			job = next
		}
	}
	p.End()
	f.show(job)
	if job.State == ledger.JobStopped || job.Dead+job.Refused+underWay(job) > 0 {
		return frame.Exit(cli.Failed)
	}
	return nil
}

// progressOf is how many dead letters of a job have a result.
func progressOf(j ledger.Job) int64 { return max(j.Sent-underWay(j), 0) }

// over says that nothing more is done for a job.
func over(j ledger.Job) bool { return j.State == ledger.JobStopped || j.State == ledger.JobDone }

// left says that a job continues without this command, and prints the next steps.
func (f Follower) left(j ledger.Job, interrupted bool) error {
	if f.AsJSON {
		f.Print(jobOf(j))
		return nil
	}
	if over(j) {
		f.show(j)
		return nil
	}
	how := "the desk continues it"
	if interrupted {
		how = "it continues without this command"
	}
	f.Say("job %d is %s, %s of %s done; %s\n", j.ID, j.State, term.Grouped(j.Sent), term.Grouped(target(j)), how)
	for _, a := range jobActions(j, f.OperatorFlag()) {
		f.Say("  %-36s %s\n", a.Text+":", a.Command)
	}
	return nil
}
