package deskcli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli"
)

func (s *session) report() *cobra.Command {
	var offline bool
	c := &cobra.Command{
		Use: "report [flags]", Short: "Summarize open dead letters, and when Kafka deletes what is still needed", DisableFlagsInUseLine: true,
		Long: "Summarize open dead letters (PENDING, PROCESSING or FAILED) by kind, code and path.\n\n" +
			"For the parking topic and both dead-letter topics it also says when Kafka's retention may delete the\n" +
			"oldest record that is still needed. For this it asks the brokers, for 20 s at most.",
		Example: "  docket report\n  docket report --no-horizon --json",
		Args:    noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&offline, "no-horizon", false, "do not ask the brokers when Kafka deletes records")
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS"}, "reported, also if dead letters are open or the brokers did not answer", "")
	c.RunE = s.run(func([]string) (work, error) {
		return func(ctx context.Context) error { return s.sumUp(ctx, offline) }, nil
	})
	return c
}

func (s *session) sumUp(ctx context.Context, offline bool) error {
	lines, err := s.sys.Book.Report(ctx)
	if err != nil {
		return fmt.Errorf("summarize: %w", err)
	}
	now := s.now()
	var horizons []worker.HorizonLine
	if s.sys.Horizon != nil && !offline {
		if horizons, err = s.sys.Horizon(ctx, now); err != nil {
			s.tell("unknown when retention deletes anything: %v\n", err)
		}
	}
	r := worker.NewReport(lines, horizons, now)
	if s.asJSON {
		s.print(r)
		return nil
	}
	s.reported(r)
	return nil
}

func (s *session) reported(r worker.Report) {
	if r.Unresolved == 0 {
		s.say("No open dead letters.\n")
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
		s.say("\n%s open\n", counted(r.Unresolved, "dead letter"))
	}
	if len(r.Horizons) > 0 {
		s.heading("When Kafka deletes what is still needed")
	}
	for i := range r.Horizons {
		s.say("%s\n", folded(plainAll(r.Horizons[i].Text(r.At)), "  ", s.width()))
	}
}
