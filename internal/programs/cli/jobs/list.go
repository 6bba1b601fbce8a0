package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
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
	after string
}

// List makes the command that lists jobs.
func List(call frame.Call) *cobra.Command {
	l := &list{Call: call}
	c := &cobra.Command{
		Use: "list [flags]", Short: "List jobs, newest first", DisableFlagsInUseLine: true, Example: "  docket jobs list\n  docket jobs list --limit 100 --after 2417",
		Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "listed, also if there are no jobs", "")
	c.Flags().IntVar(&l.limit, "limit", 20, "list at most `N` jobs, 1 to 1000")
	c.Flags().StringVar(&l.after, "after", "", "continue after `CURSOR`, printed as next by the page before")
	c.RunE = l.Run(func([]string) (frame.Work, error) {
		if l.limit < 1 || l.limit > mostJobs {
			return nil, frame.Misuse("--limit must be 1 to %d", mostJobs)
		}
		before, err := frame.NumberAfter(l.after)
		return func(ctx context.Context) error { return l.listed(ctx, before) }, err
	})
	return c
}

func (l *list) listed(ctx context.Context, before int64) error {
	jobs, next, err := frame.Numbered(func(before int64, n int) ([]ledger.Job, error) { return l.Sys.Book.ListJobs(ctx, before, n) },
		before, l.limit, func(j ledger.Job) int64 { return j.ID })
	if err != nil {
		return err // it names the act
	}
	switch {
	case l.AsJSON:
		l.Print(frame.ListOf(jobs, next, jobOf))
	case len(jobs) == 0 && before > 0:
		l.Tell("no older jobs\n")
	case len(jobs) == 0:
		l.Tell("no jobs; `docket dlq retry` with filter flags creates one\n")
	default:
		l.rows(jobs)
		l.NextPage(len(jobs), next)
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
			{Full: fmt.Sprint(j.ID)}, {Full: string(j.State)}, {Full: Verbs[j.Act].Name}, {Full: term.Grouped(j.Sent) + "/" + term.Grouped(target(j))},
			{Full: term.Grouped(j.Stored)}, {Full: term.Grouped(j.Dead)}, {Full: term.Grouped(j.Refused)}, {Full: term.Brief(j.Operator)},
			{Full: term.Moment(j.CreatedAt, now), Brief: term.Ago(j.CreatedAt, now)}, {Full: pick.Which(j.Filter)}, {Full: term.Brief(j.Reason)},
		})
	}
	l.Table(columns, rows, "")
}
