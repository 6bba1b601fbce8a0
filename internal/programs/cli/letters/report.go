package letters

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// report is docket report.
type report struct {
	frame.Call
	offline bool
}

// Report makes the command that summarizes open dead letters.
func Report(call frame.Call) *cobra.Command {
	rp := &report{Call: call}
	c := &cobra.Command{
		Use: "report [flags]", Short: "Summarize open dead letters, and when Kafka deletes what is still needed", DisableFlagsInUseLine: true,
		Long: "Summarize open dead letters (PENDING, PROCESSING or FAILED) by kind, code and path.\n\n" +
			"It also says when Kafka's retention may delete the oldest record that is still needed, for the topics of\n" +
			"lanes, parked records and dead letters. For this it asks the brokers, for 20 s at most.",
		Example: "  docket report\n  docket report --no-horizon --json",
		Args:    frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&rp.offline, "no-horizon", false, "do not ask the brokers when Kafka deletes records")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS"}, "reported, also if dead letters are open or the brokers did not answer", "")
	c.RunE = rp.Run(func([]string) (frame.Work, error) { return rp.summarize, nil })
	return c
}

func (rp *report) summarize(ctx context.Context) error {
	lines, err := rp.Sys.Book.Report(ctx)
	if err != nil {
		return fmt.Errorf("summarize: %w", err)
	}
	now := rp.Now()
	var horizons []worker.HorizonLine
	if rp.Sys.Horizon != nil && !rp.offline {
		if horizons, err = rp.Sys.Horizon(ctx, now); err != nil {
			rp.Tell("unknown when retention deletes anything: %v\n", err)
		}
	}
	r := worker.NewReport(lines, horizons, now)
	if rp.AsJSON {
		rp.Print(r)
		return nil
	}
	rp.text(r)
	return nil
}

func (rp *report) text(r worker.Report) {
	if r.Unresolved == 0 {
		rp.Say("No open dead letters.\n")
	} else {
		columns := []term.Column{
			{Title: "open", Right: true}, {Title: "kind", Rank: 3}, {Title: "code"}, {Title: "path", Rank: 1, Least: 16},
			{Title: "pending", Right: true, Rank: 4}, {Title: "processing", Right: true, Rank: 4}, {Title: "failed", Right: true, Rank: 4}, {Title: "oldest", Rank: 2},
		}
		var rows [][]term.Cell
		for _, l := range r.Lines {
			rows = append(rows, []term.Cell{
				{Full: term.Grouped(l.Unresolved)}, {Full: term.Brief(l.Kind)}, {Full: term.Brief(l.Code)}, {Full: term.Brief(l.Path)}, {Full: term.Grouped(l.Counts[ledger.Pending])},
				{Full: term.Grouped(l.Counts[ledger.Processing])}, {Full: term.Grouped(l.Counts[ledger.Failed])}, {Full: term.Moment(l.Oldest, r.At), Brief: term.Ago(l.Oldest, r.At)},
			})
		}
		rp.Table(columns, rows, "")
		rp.Say("\n%s open\n", term.Counted(r.Unresolved, "dead letter"))
	}
	if len(r.Horizons) > 0 {
		rp.Heading("When Kafka deletes what is still needed")
	}
	for i := range r.Horizons {
		rp.Say("%s\n", term.Folded(r.Horizons[i].Text(r.At), "  ", rp.Width()))
	}
}
