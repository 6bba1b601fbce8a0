package deskcli

import (
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/cli"
)

// reused are the commands of all programs, as they are there.
func (s *session) reused() []*cobra.Command {
	var commands []*cobra.Command
	for _, c := range []cli.Command{cli.Check(), cli.Migrate(), cli.Verify(), cli.WhereIs(), cli.Classify(), cli.Health(), cli.Version()} {
		use := c.Name
		if c.Args != "" {
			use += " " + c.Args
		}
		commands = append(commands, &cobra.Command{
			Use: use, Short: strings.TrimSuffix(c.Text, "."), DisableFlagParsing: true, DisableFlagsInUseLine: true, ValidArgsFunction: s.completeReused(c.Name),
			RunE: func(_ *cobra.Command, args []string) error {
				s.code = c.Do(s.env, leading(args))
				return nil
			},
		})
	}
	return commands
}

// leading puts --json first, wherever it stands, as those commands take flags before anything else; --wide is taken and means
// nothing to them.
func leading(args []string) []string {
	var first, rest []string
	for i, arg := range args {
		switch arg {
		case "--":
			return append(append(first, rest...), args[i:]...)
		case "--json":
			first = []string{arg}
		case "--wide":
		default:
			rest = append(rest, arg)
		}
	}
	return append(first, rest...)
}

// desk is the daemon.
func (s *session) desk() *cobra.Command {
	return &cobra.Command{
		Use: "desk", Short: "Run the desk: fill the ledger, put back what is retried, look after jobs, tell of what is wrong",
		DisableFlagParsing: true, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if s.o.Desk == nil {
				return misuse("this build has no daemon")
			}
			s.code = s.o.Desk(s.env, args)
			return nil
		},
	}
}
