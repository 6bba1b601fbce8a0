package jobs

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/pick"
	"docket/internal/programs/cli/term"
)

// mostJobs is how many jobs are listed at most.
const mostJobs = 1000

// list is docket jobs list.
type list struct {
	frame.Call
	limit int
}

// List makes the command that lists jobs.
func List(call frame.Call) *cobra.Command {
	l := &list{Call: call}
	c := &cobra.Command{
		Use: "list [flags]", Short: "List jobs, newest first", DisableFlagsInUseLine: true, Example: "  docket jobs list",
		Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "listed, also if there are no jobs", "")
	c.Flags().IntVar(&l.limit, "limit", 20, "list at most `N` jobs, 1 to 1000")
	c.RunE = l.Run(func([]string) (frame.Work, error) {
		if l.limit < 1 || l.limit > mostJobs {
			return nil, frame.Misuse("--limit must be 1 to %d", mostJobs)
		}
		return l.listed, nil
	})
	return c
}

func (l *list) listed(ctx context.Context) error {
	jobs, err := l.Sys.Book.ListJobs(ctx, l.limit)
	if err != nil {
		return err // it names the act
	}
	switch {
	case l.AsJSON:
		l.Print(frame.ListOf(jobs, "", jobOf))
	case len(jobs) == 0:
		l.Tell("no jobs; `docket dlq retry` with filter flags creates one\n")
	default:
		l.rows(jobs)
	}
	return nil
}

func (l *list) rows(jobs []ledger.Job) {
	columns := []term.Column{
		{Title: "job", Right: true}, {Title: "state", Paint: l.PaintState}, {Title: "task", Rank: 3}, {Title: "done"},
		{Title: "stored", Right: true, Rank: 1}, {Title: "failed", Right: true, Rank: 1}, {Title: "not sent", Right: true, Rank: 6},
		{Title: "operator", Rank: 2, Least: 8}, {Title: "created", Rank: 4}, {Title: "filter", Rank: 5, Least: 16}, {Title: "reason", Rank: 7, Least: 12},
	}
	now := l.Now()
	var rows [][]term.Cell
	for _, j := range jobs {
		rows = append(rows, []term.Cell{
			{Full: fmt.Sprint(j.ID)}, {Full: string(j.State)}, {Full: Verbs[j.Act].name}, {Full: term.Grouped(j.Sent) + "/" + term.Grouped(target(j))},
			{Full: term.Grouped(j.Stored)}, {Full: term.Grouped(j.Dead)}, {Full: term.Grouped(j.Refused)}, {Full: term.Brief(j.Operator)},
			{Full: term.Moment(j.CreatedAt, now), Brief: term.Ago(j.CreatedAt, now)}, {Full: pick.Which(j.Filter)}, {Full: term.Brief(j.Reason)},
		})
	}
	l.Table(columns, rows, "")
}

// target is how many a job is to move.
func target(j ledger.Job) int64 {
	n := j.Matched
	if j.Limit > 0 {
		n = min(n, j.Limit)
	}
	return max(n, j.Sent)
}

// underWay is how many retries of a job have not ended. A job that resolves has none.
func underWay(j ledger.Job) int64 {
	if j.Act == ledger.Closed {
		return 0
	}
	return max(j.Open(), 0)
}

func jobID(args []string) (int64, error) {
	if len(args) != 1 {
		return 0, frame.Misuse("give one job number, as `docket jobs list` prints it")
	}
	id, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || id < 1 {
		return 0, frame.Misuse("%s is not a job number", term.Quoted(args[0]))
	}
	return id, nil
}

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

func (f Follower) show(j ledger.Job) {
	if f.AsJSON {
		f.Print(jobOf(j))
		return
	}
	now := f.Now()
	f.Say("%s %d, %s\n", f.Paint(term.Bold, "Job"), j.ID, f.PaintState(string(j.State)))
	f.Field("task", Verbs[j.Act].name+" "+pick.Which(j.Filter)+limits(j))
	f.Field("created by", term.Brief(j.Operator)+": "+j.Reason)
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

// finish adds the flags and the work.
func (m *change) finish(c *cobra.Command) *cobra.Command {
	m.Declare(c.Flags(), "why you do this: `TEXT` for the job (default \""+m.otherwise+"\")")
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

// completeJobs suggests the numbers of jobs.
func completeJobs(call frame.Call) frame.Completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return call.Suggest(func(ctx context.Context, _ string) ([]string, error) {
			jobs, err := call.Sys.Book.ListJobs(ctx, frame.Suggested)
			var out []string
			for _, j := range jobs {
				out = append(out, fmt.Sprintf("%d\t%s %s %s", j.ID, j.State, Verbs[j.Act].name, term.Brief(pick.Described(j.Filter))))
			}
			return out, err
		})(c, args, begun)
	}
}

// Verbs are how an act is called.
var Verbs = map[ledger.Act]struct{ name, Doing, Ask string }{
	ledger.Retried: {"retry", "retrying", "Retry"},
	ledger.Closed:  {"resolve", "resolving", "Resolve"},
}

// Paced writes a rate, behind a comma; empty: there is no limit.
func Paced(rate float64) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprintf(", %g per second", rate)
}
