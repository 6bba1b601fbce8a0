package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli/frame"
)

// show is docket jobs show.
type show struct {
	Follower
	follow bool
}

// Show makes the command that shows a job.
func Show(call frame.Call) *cobra.Command {
	sj := &show{Follower: Follower{call}}
	c := &cobra.Command{
		Use: "show JOB [flags]", Short: "Show a job; --watch follows it until it ends", DisableFlagsInUseLine: true,
		Example: "  docket jobs show 12\n  docket jobs show 12 --watch", ValidArgsFunction: completeJobs(call),
	}
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "shown; with --watch: all of the job are stored or resolved, or you pressed Ctrl-C",
		"no such job; with --watch: the job stopped, or not all of it was done")
	c.Flags().BoolVar(&sj.follow, "watch", false, "follow it until it ends")
	c.RunE = sj.Run(func(args []string) (frame.Work, error) {
		id, err := jobID(args)
		return func(ctx context.Context) error { return sj.one(ctx, id) }, err
	})
	return c
}

func (sj *show) one(ctx context.Context, id int64) error {
	job, err := sj.Sys.Book.Job(ctx, id)
	if err != nil {
		return fmt.Errorf("job %d: %w", id, err)
	}
	if sj.follow {
		return sj.Watch(ctx, job, true, false)
	}
	sj.show(job)
	if over(job) {
		return nil
	}
	_, err = Running(ctx, sj.Call) // a job that is RUNNING waits as well where its desk is gone
	return err
}
