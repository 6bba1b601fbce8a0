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
		commands[c.Name] = s.reuse(c, func(args []string) int { return c.Do(s.env, args) })
	}
	return commands
}

// reuse makes a command of one that reads its flags itself. Its flags are declared, so that a shell can complete them.
func (s *session) reuse(c cli.Command, do func(args []string) int) *cobra.Command {
	made := &cobra.Command{
		Use: strings.TrimSpace(c.Name + " " + c.Args), Short: strings.TrimSuffix(c.Text, "."), ValidArgsFunction: s.completeReused(c.Name),
		DisableFlagParsing: true, DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			s.code = do(narrow(args))
			return nil
		},
	}
	made.Flags().AddGoFlagSet(c.FlagSet())
	return made
}

// program makes a command of a program, which holds the commands of that program.
func (s *session) program(p Program) *cobra.Command {
	run := func(args ...string) int {
		env := s.env
		env.Name, env.Args = string(env.Program)+" "+p.Name, args
		return p.Main(env)
	}
	made := s.reuse(cli.Command{Name: p.Name, Text: p.Text}, func(args []string) int { return run(args...) })
	for _, c := range p.Commands() {
		made.AddCommand(s.reuse(c, func(args []string) int { return run(append([]string{c.Name}, args...)...) }))
	}
	return made
}

// daemons are the commands that run the programs.
func (s *session) daemons() []*cobra.Command {
	var all []*cobra.Command
	for _, p := range s.o.Programs {
		all = append(all, s.program(p))
	}
	all = append(all, s.desk())
	if s.o.Demo.Run != nil {
		all = append(all, s.reuse(s.o.Demo, func(args []string) int { return s.o.Demo.Do(s.env, args) }))
	}
	return all
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
