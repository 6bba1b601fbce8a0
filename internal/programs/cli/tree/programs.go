package tree

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
)

// reused are the commands of all programs, as they are there, by name.
func (t *tree) reused() map[string]*cobra.Command {
	commands := map[string]*cobra.Command{}
	for _, c := range []cli.Command{cli.Check(), cli.Migrate(), cli.Verify(), cli.WhereIs(), cli.Classify(), cli.Health(), cli.Version()} {
		switch c.Name {
		case "health":
			c.Text = "Ask the desk on this host if it is healthy, for container health checks."
		case "check":
			c.More += "\nWith --server, the desk checks with its own settings and logins. It does not see the spools. That needs the\n" +
				"role operator."
		case "verify":
			c.More += "\n\nWith --server, the desk verifies with its own settings and logins, for 5 minutes at most and one at a time. It\n" +
				"sees its own spool alone. That needs the role operator."
		}
		commands[c.Name] = t.reuseOr(c, func(args []string) (int, error) {
			if slices.ContainsFunc(args, func(arg string) bool { return arg == "--help" || arg == "-h" || arg == "-help" }) {
				return c.Do(t.Env, args), nil
			}
			env, err := t.asking(c.Name)
			if err != nil {
				return cli.Misuse, err
			}
			return c.Do(env, args), nil
		})
	}
	return commands
}

// reuse makes a command of one that reads its flags itself. Its flags are declared, so that a shell can complete them.
func (t *tree) reuse(c cli.Command, do func(args []string) int) *cobra.Command {
	return t.reuseOr(c, func(args []string) (int, error) { return do(args), nil })
}

// reuseOr is reuse for a command that may be refused.
func (t *tree) reuseOr(c cli.Command, do func(args []string) (int, error)) *cobra.Command {
	made := &cobra.Command{
		Use: strings.TrimSpace(c.Name + " " + c.Args), Short: strings.TrimSuffix(c.Text, "."), ValidArgsFunction: completeReused(c.Name),
		DisableFlagParsing: true, DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			var err error
			t.Code, err = do(narrow(args))
			return err
		},
	}
	made.Flags().AddGoFlagSet(c.FlagSet())
	return made
}

// program makes a command of a program, which holds the commands of that program.
func (t *tree) program(p frame.Program) *cobra.Command {
	run := func(args ...string) int {
		env := t.Env
		env.Name, env.Args = string(env.Program)+" "+p.Name, args
		return p.Main(env)
	}
	made := t.reuse(cli.Command{Name: p.Name, Text: p.Text}, func(args []string) int { return run(args...) })
	for _, c := range p.Commands() {
		made.AddCommand(t.reuse(c, func(args []string) int { return run(append([]string{c.Name}, args...)...) }))
	}
	return made
}

// topics holds the command on Kafka's topics.
func (t *tree) topics() *cobra.Command {
	create := cli.CreateTopics()
	return t.group(&cobra.Command{
		Use: "topics", Short: "Create the Kafka topics that Docket needs",
		Long:    "Create the Kafka topics that Docket needs. `docket check` says what is wrong with those that exist.",
		Example: "  docket topics create --dry-run\n  docket topics create",
	}, t.reuse(create, func(args []string) int {
		env := t.Env
		env.Name = env.Called() + " topics"
		return create.Do(env, args)
	}))
}

// daemons are the commands that run the programs.
func (t *tree) daemons() []*cobra.Command {
	var all []*cobra.Command
	for _, p := range t.Options.Programs {
		all = append(all, t.program(p))
	}
	all = append(all, t.desk())
	if t.Options.Demo.Run != nil {
		all = append(all, t.reuse(t.Options.Demo, func(args []string) int { return t.Options.Demo.Do(t.Env, args) }))
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
func (t *tree) desk() *cobra.Command {
	return &cobra.Command{
		Use: "desk", Short: "Run the desk, the daemon that lists and retries dead letters and alerts people",
		DisableFlagParsing: true, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if t.Options.Desk == nil {
				return frame.Misuse("this build cannot run the desk")
			}
			t.Code = t.Options.Desk(t.Env, args)
			return nil
		},
	}
}
