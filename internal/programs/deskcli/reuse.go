package deskcli

import (
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli"
)

// reused are the commands of all programs, as they are there, by name.
func (s *session) reused() map[string]*cobra.Command {
	commands := map[string]*cobra.Command{}
	for _, c := range []cli.Command{cli.Check(), cli.Migrate(), cli.Verify(), cli.WhereIs(), cli.Classify(), cli.Health(), cli.Version()} {
		if c.Name == "health" {
			c.Text = "Ask the desk on this host if it is healthy, for container health checks."
		}
		use := c.Name
		if c.Args != "" {
			use += " " + c.Args
		}
		commands[c.Name] = &cobra.Command{
			Use: use, Short: strings.TrimSuffix(c.Text, "."), DisableFlagParsing: true, DisableFlagsInUseLine: true, ValidArgsFunction: s.completeReused(c.Name),
			RunE: func(_ *cobra.Command, args []string) error {
				s.code = c.Do(s.env, narrow(args))
				return nil
			},
		}
	}
	return commands
}

// narrow takes --wide away, which means nothing to those commands.
func narrow(args []string) []string {
	var rest []string
	for i, arg := range args {
		if arg == "--" {
			return append(rest, args[i:]...)
		}
		if arg != "--wide" {
			rest = append(rest, arg)
		}
	}
	return rest
}

// desk is the daemon.
func (s *session) desk() *cobra.Command {
	return &cobra.Command{
		Use: "desk", Short: "Run the desk, the daemon that lists and retries dead letters and alerts people",
		DisableFlagParsing: true, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if s.o.Desk == nil {
				return misuse("this build cannot run the desk")
			}
			s.code = s.o.Desk(s.env, args)
			return nil
		},
	}
}
