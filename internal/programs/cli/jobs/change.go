package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
)

// change is docket jobs stop or docket jobs resume.
type change struct {
	Follower
	frame.Signature
	otherwise string // the reason where none is given
	change    func(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error)
}

// Stop makes the command that stops a job.
func Stop(call frame.Call) *cobra.Command {
	m := &change{Follower: Follower{call}, otherwise: "stopped by hand"}
	m.change = func(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
		return m.Sys.Book.StopJob(ctx, id, by.Why, by)
	}
	c := &cobra.Command{
		Use: "stop JOB [flags]", Short: "Stop a job; retries already sent continue", DisableFlagsInUseLine: true,
		Example: "  docket jobs stop 12 --operator mara --reason 'the fix is not out yet'", ValidArgsFunction: completeJobs(call),
	}
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "the job is STOPPED, or had ended before", "no such job, or the command failed")
	return m.finish(c)
}

// Resume makes the command that resumes a job.
func Resume(call frame.Call) *cobra.Command {
	m := &change{Follower: Follower{call}, otherwise: "by hand"}
	m.change = func(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
		job, err := m.Sys.Book.ResumeJob(ctx, id, by)
		if err == nil {
			_, err = Running(ctx, m.Call)
		}
		return job, err
	}
	c := &cobra.Command{
		Use: "resume JOB [flags]", Short: "Resume a stopped job", DisableFlagsInUseLine: true,
		Long:    "Resume a stopped job. A running desk continues it with the dead letters that it has not sent yet.",
		Example: "  docket jobs resume 12 --operator mara --reason 'the fix is out'", ValidArgsFunction: completeJobs(call),
	}
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "the job continues, or was not STOPPED and is unchanged", "no such job, or the command failed")
	return m.finish(c)
}

// Approve makes the command that approves a job.
func Approve(call frame.Call) *cobra.Command {
	m := &change{Follower: Follower{call}}
	m.change = func(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
		by.Job = 0
		return m.Sys.Book.ApproveJob(ctx, id, by)
	}
	c := &cobra.Command{
		Use: "approve JOB [flags]", Short: "Approve a job that somebody else made and that needs a second person", DisableFlagsInUseLine: true,
		Long: "Approve a job that somebody else made and that needs a second person: with DOCKET_DESK_FOUR_EYES, one that\n" +
			"resolves many dead letters. The database refuses the name and the login that made it.",
		Example: "  docket jobs approve 12 --operator oleg --reason 'agreed'", ValidArgsFunction: completeJobs(call),
	}
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "a desk takes the job", "no such job, it does not wait for a second person, or the command failed")
	return m.finish(c)
}

// finish adds the flags and the work.
func (m *change) finish(c *cobra.Command) *cobra.Command {
	text := frame.ReasonText
	if m.otherwise != "" {
		text = "why you do this: `TEXT` for the job (default \"" + m.otherwise + "\")"
	}
	m.Declare(c.Flags(), text)
	c.RunE = m.Run(m.check)
	return c
}

// check looks at flags and arguments.
func (m *change) check(args []string) (frame.Work, error) {
	id, err := jobID(args)
	if err != nil {
		return nil, err
	}
	by, err := m.Actor(m.Signature, m.otherwise)
	by.Job = id
	return func(ctx context.Context) error {
		job, err := m.change(ctx, id, by)
		if err != nil {
			return fmt.Errorf("job %d: %w", id, err)
		}
		m.show(job)
		return nil
	}, err
}
