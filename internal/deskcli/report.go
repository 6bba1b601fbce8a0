package deskcli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/cli"
	"docket/internal/desk"
	"docket/internal/ledger"
)

func (s *session) report() *cobra.Command {
	var offline bool
	c := &cobra.Command{
		Use: "report [flags]", Short: "Sum up what is unresolved, and when retention begins to delete it", DisableFlagsInUseLine: true,
		Long: "Sum up what is unresolved by kind, code and path, and say for the parking topic and both dead-letter topics when\n" +
			"retention may delete the oldest record that is still wanted there. That asks the brokers, for 20 s at most.",
		Example: "  docket report\n  docket report --no-horizon --json",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&offline, "no-horizon", false, "leave the brokers unasked")
	c.RunE = s.run(func([]string) (work, error) {
		return func(ctx context.Context) error { return s.sumUp(ctx, offline) }, nil
	})
	return c
}

func (s *session) sumUp(ctx context.Context, offline bool) error {
	lines, err := s.sys.Book.Report(ctx)
	if err != nil {
		return fmt.Errorf("sum up: %w", err)
	}
	now := s.now()
	var horizons []desk.HorizonLine
	if s.sys.Horizon != nil && !offline {
		if horizons, err = s.sys.Horizon(ctx, now); err != nil {
			s.tell("not known when retention deletes anything: %v\n", err)
		}
	}
	r := desk.NewReport(lines, horizons, now)
	if s.asJSON {
		s.print(r)
		return nil
	}
	s.reported(r)
	return nil
}

func (s *session) reported(r desk.Report) {
	if r.Unresolved == 0 {
		s.say("No dead letter is unresolved.\n")
	} else {
		columns := []column{
			{title: "open", right: true}, {title: "kind", rank: 3}, {title: "code"}, {title: "path", rank: 1, least: 16},
			{title: "pending", right: true, rank: 4}, {title: "processing", right: true, rank: 4}, {title: "failed", right: true, rank: 4}, {title: "oldest", rank: 2},
		}
		var rows [][]cell
		for _, l := range r.Lines {
			rows = append(rows, []cell{
				{full: cli.Grouped(l.Unresolved)}, {full: plain(l.Kind)}, {full: plain(l.Code)}, {full: plain(l.Path)}, {full: cli.Grouped(l.Counts[ledger.Pending])},
				{full: cli.Grouped(l.Counts[ledger.Processing])}, {full: cli.Grouped(l.Counts[ledger.Failed])}, {full: moment(l.Oldest, r.At), brief: ago(l.Oldest, r.At)},
			})
		}
		s.table(columns, rows, "")
		s.say("\n%s unresolved\n", counted(r.Unresolved, "dead letter"))
	}
	if len(r.Horizons) > 0 {
		s.heading("Loss horizon")
	}
	for i := range r.Horizons {
		s.say("%s\n", folded(plainAll(r.Horizons[i].Text(r.At)), "  ", s.width()))
	}
}
