package deskcli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
)

func (s *session) jobs() *cobra.Command {
	return s.group(&cobra.Command{
		Use: "jobs", Short: "List, show, stop and resume jobs: retries and resolves of many dead letters",
		Long: "List, show, stop and resume jobs.\n\n" +
			"`docket dlq retry` and `docket dlq resolve` with filter flags create a job. A running desk works on one\n" +
			"job at a time, also after your command has ended.",
		Example: "  docket jobs list\n  docket jobs show 12 --watch",
	}, s.jobsList(), s.jobsShow(), s.jobsStop(), s.jobsResume())
}

func (s *session) jobsList() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "list [flags]", Short: "List jobs, newest first", DisableFlagsInUseLine: true, Example: "  docket jobs list",
		Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	usage(c, []string{"DOCKET_DATABASE_URL"}, "listed, also if there are no jobs", "")
	c.Flags().IntVar(&limit, "limit", 20, "list at most `N` jobs, 1 to 1000")
	c.RunE = s.run(func([]string) (work, error) {
		if limit < 1 || limit > mostList {
			return nil, misuse("--limit must be 1 to %d", mostList)
		}
		return func(ctx context.Context) error { return s.listJobs(ctx, limit) }, nil
	})
	return c
}

func (s *session) listJobs(ctx context.Context, limit int) error {
	jobs, err := s.sys.Book.ListJobs(ctx, limit)
	if err != nil {
		return err // it names the act
	}
	switch {
	case s.asJSON:
		s.print(listOf(jobs, "", jobOf))
	case len(jobs) == 0:
		s.tell("no jobs; `docket dlq retry` with filter flags creates one\n")
	default:
		s.jobTable(jobs)
	}
	return nil
}

func (s *session) jobTable(jobs []ledger.Job) {
	columns := []column{
		{title: "job", right: true}, {title: "state", paint: s.paintState}, {title: "task", rank: 3}, {title: "done"},
		{title: "stored", right: true, rank: 1}, {title: "failed", right: true, rank: 1}, {title: "not sent", right: true, rank: 6},
		{title: "operator", rank: 2, least: 8}, {title: "created", rank: 4}, {title: "filter", rank: 5, least: 16}, {title: "reason", rank: 7, least: 12},
	}
	now := s.now()
	var rows [][]cell
	for _, j := range jobs {
		rows = append(rows, []cell{
			{full: fmt.Sprint(j.ID)}, {full: string(j.State)}, {full: verbs[j.Act].name}, {full: grouped(j.Sent) + "/" + grouped(target(j))},
			{full: grouped(j.Stored)}, {full: grouped(j.Dead)}, {full: grouped(j.Refused)}, {full: plain(j.Operator)},
			{full: moment(j.CreatedAt, now), brief: ago(j.CreatedAt, now)}, {full: which(j.Filter)}, {full: plain(j.Reason)},
		})
	}
	s.table(columns, rows, "")
}

// which is what the filter of a job chooses. That it is PENDING or FAILED goes without saying.
func which(f ledger.Filter) string {
	if len(f.States) == 2 {
		f.States = nil
	}
	return described(f)
}

// target is how many a job is to move.
func target(j ledger.Job) int64 {
	n := j.Matched
	if j.Limit > 0 {
		n = min(n, j.Limit)
	}
	return max(n, j.Sent)
}

// underWay is how many retries of a job have not ended. What is resolved has no way to go.
func underWay(j ledger.Job) int64 {
	if j.Act == ledger.Closed {
		return 0
	}
	return max(j.Open(), 0)
}

func jobID(args []string) (int64, error) {
	if len(args) != 1 {
		return 0, misuse("give one job number, as `docket jobs list` prints it")
	}
	id, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || id < 1 {
		return 0, misuse("%s is not a job number", quoted(args[0]))
	}
	return id, nil
}

func (s *session) jobsShow() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use: "show JOB [flags]", Short: "Show a job; --watch follows it until it ends", DisableFlagsInUseLine: true,
		Example: "  docket jobs show 12\n  docket jobs show 12 --watch", ValidArgsFunction: s.completeJobs,
	}
	usage(c, []string{"DOCKET_DATABASE_URL"}, "shown; with --watch: all of the job are stored or resolved, or you pressed Ctrl-C",
		"no such job; with --watch: the job stopped, or not all of it was done")
	c.Flags().BoolVar(&watch, "watch", false, "follow it until it ends")
	c.RunE = s.run(func(args []string) (work, error) {
		id, err := jobID(args)
		return func(ctx context.Context) error { return s.lookAtJob(ctx, id, watch) }, err
	})
	return c
}

func (s *session) lookAtJob(ctx context.Context, id int64, watch bool) error {
	job, err := s.sys.Book.Job(ctx, id)
	if err != nil {
		return fmt.Errorf("job %d: %w", id, err)
	}
	if watch {
		return s.watch(ctx, job, true, false)
	}
	s.showJob(job)
	if over(job) {
		return nil
	}
	_, err = s.running(ctx) // a job that is RUNNING waits as well where its desk is gone
	return err
}

func (s *session) showJob(j ledger.Job) {
	if s.asJSON {
		s.print(jobOf(j))
		return
	}
	now := s.now()
	s.say("%s %d, %s\n", s.paint(bold, "Job"), j.ID, s.paintState(string(j.State)))
	s.field("task", verbs[j.Act].name+" "+which(j.Filter)+limits(j))
	s.field("created by", plain(j.Operator)+": "+plainAll(j.Reason))
	s.field("done", grouped(j.Sent)+" of "+grouped(target(j)))
	if j.Act == ledger.Retried {
		s.field("results", tally(j))
	}
	s.field("created", moment(j.CreatedAt, now))
	if !j.StartedAt.IsZero() {
		s.field("started", moment(j.StartedAt, now))
	}
	if !j.EndedAt.IsZero() {
		s.field("ended", moment(j.EndedAt, now))
	}
	s.field("desk", plain(j.Owner))
	s.field("stopped by", plain(j.StoppedBy))
	s.field("note", plainAll(j.Note))
	s.heading("What you can do now")
	for _, a := range jobActions(j, s.operatorFlag()) {
		s.say("  %s\n    %s\n", a.Text, s.paint(cyan, a.Command))
	}
}

// chosen are the flags that choose what a filter does, as commands that move letters take them.
func chosen(f ledger.Filter) string {
	if len(f.States) == 2 {
		f.States = nil
	}
	if flags := words(f); len(flags) > 0 {
		return strings.Join(flags, " ")
	}
	return "--all"
}

func limits(j ledger.Job) string {
	text := paced(j.Rate)
	if j.Limit > 0 {
		text += ", at most " + grouped(j.Limit)
	}
	return text
}

// tally is how a job's retries ended.
func tally(j ledger.Job) string {
	return fmt.Sprintf("%s stored, %s failed again, %s not sent, %s in progress", grouped(j.Stored), grouped(j.Dead), grouped(j.Refused), grouped(underWay(j)))
}

// brief is the tally of a job as far as there is something to tell, for the narrow place beside a bar.
func brief(j ledger.Job) string {
	var said []string
	for _, part := range []struct {
		n    int64
		what string
	}{{j.Stored, "stored"}, {j.Dead, "failed"}, {j.Refused, "not sent"}} {
		if part.n > 0 {
			said = append(said, grouped(part.n)+" "+part.what)
		}
	}
	return strings.Join(said, ", ")
}

func jobActions(j ledger.Job, operator string) []action {
	id := fmt.Sprint(j.ID)
	switch j.State {
	case ledger.JobWaiting, ledger.JobRunning:
		return []action{{"follow it", "docket jobs show " + id + " --watch"}, {"stop it (retries in progress continue)", join("docket jobs stop", id, operator, "--reason '...'")}}
	case ledger.JobStopped:
		return []action{
			{"test whether the rest would be stored now", join("docket dlq retry", chosen(j.Filter), "--dry-run")},
			{"see the causes", join("docket dlq groups", strings.Join(words(j.Filter), " "))},
			{"resume it", join("docket jobs resume", id, operator)},
		}
	}
	return []action{{"see what is still open", join("docket dlq list", strings.Join(words(j.Filter), " "))}}
}

func (s *session) jobsStop() *cobra.Command {
	var d deciding
	c := &cobra.Command{
		Use: "stop JOB [flags]", Short: "Stop a job; retries already sent continue", DisableFlagsInUseLine: true,
		Example: "  docket jobs stop 12 --operator mara --reason 'the fix is not out yet'", ValidArgsFunction: s.completeJobs,
	}
	declareActor(c, &d, "stopped by hand")
	usage(c, []string{"DOCKET_DATABASE_URL"}, "the job is STOPPED, or had ended before", "no such job, or the command failed")
	c.RunE = s.run(func(args []string) (work, error) {
		return s.moveJob(args, &d, "stopped by hand", func(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
			return s.sys.Book.StopJob(ctx, id, by.Why, by)
		})
	})
	return c
}

func (s *session) jobsResume() *cobra.Command {
	var d deciding
	c := &cobra.Command{
		Use: "resume JOB [flags]", Short: "Resume a stopped job", DisableFlagsInUseLine: true,
		Long:    "Resume a stopped job. A running desk continues it with the dead letters that it has not sent yet.",
		Example: "  docket jobs resume 12 --operator mara --reason 'the fix is out'", ValidArgsFunction: s.completeJobs,
	}
	declareActor(c, &d, "by hand")
	usage(c, []string{"DOCKET_DATABASE_URL"}, "the job continues, or was not STOPPED and is unchanged", "no such job, or the command failed")
	c.RunE = s.run(func(args []string) (work, error) {
		return s.moveJob(args, &d, "by hand", func(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
			job, err := s.sys.Book.ResumeJob(ctx, id, by)
			if err == nil {
				_, err = s.running(ctx)
			}
			return job, err
		})
	})
	return c
}

func declareActor(c *cobra.Command, d *deciding, otherwise string) {
	c.Flags().StringVar(&d.operator, "operator", "", operatorText)
	c.Flags().StringVar(&d.reason, "reason", "", "why you do this: `TEXT` for the job (default \""+otherwise+"\")")
}

func (s *session) moveJob(args []string, d *deciding, otherwise string, do func(context.Context, int64, ledger.Actor) (ledger.Job, error)) (work, error) {
	id, err := jobID(args)
	if err != nil {
		return nil, err
	}
	by, err := s.actor(d, otherwise)
	by.Job = id
	return func(ctx context.Context) error {
		job, err := do(ctx, id, by)
		if err != nil {
			return fmt.Errorf("job %d: %w", id, err)
		}
		s.showJob(job)
		return nil
	}, err
}

// watch follows a job to its end. A signal leaves the job to itself.
func (s *session) watch(ctx context.Context, job ledger.Job, wait, detach bool) error {
	there, err := s.running(ctx)
	if err != nil {
		return err
	}
	if over(job) || detach || !there && !wait {
		return s.left(job, false)
	}
	p := s.progress(fmt.Sprintf("job %d", job.ID))
	for !over(job) {
		p.brief = brief(job)
		p.at(progressOf(job), target(job), tally(job))
		if !sleep(ctx, lookEvery) {
			p.end()
			return s.left(job, true)
		}
		next, err := s.sys.Book.Job(ctx, job.ID)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			p.end()
			s.tell("the job continues; to follow it again: docket jobs show %d --watch\n", job.ID)
			return fmt.Errorf("look at job %d: %w", job.ID, err)
		default:
			job = next
		}
	}
	p.end()
	s.showJob(job)
	if job.State == ledger.JobStopped || job.Dead+job.Refused+underWay(job) > 0 {
		return endError(cli.Failed)
	}
	return nil
}

// progressOf is how many of a job's letters have come to their end.
func progressOf(j ledger.Job) int64 { return max(j.Sent-underWay(j), 0) }

// over says that nothing more is done for a job.
func over(j ledger.Job) bool { return j.State == ledger.JobStopped || j.State == ledger.JobDone }

// left says that a job is left to itself, and what can be done about it.
func (s *session) left(j ledger.Job, interrupted bool) error {
	if s.asJSON {
		s.print(jobOf(j))
		return nil
	}
	if over(j) {
		s.showJob(j)
		return nil
	}
	how := "the desk continues it"
	if interrupted {
		how = "it continues without this command"
	}
	s.say("job %d is %s, %s of %s done; %s\n", j.ID, j.State, grouped(j.Sent), grouped(target(j)), how)
	for _, a := range jobActions(j, s.operatorFlag()) {
		s.say("  %-36s %s\n", a.Text+":", a.Command)
	}
	return nil
}
