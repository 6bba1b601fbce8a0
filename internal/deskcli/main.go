package deskcli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/cli"
	"docket/internal/config"
)

// Main does what the command line says and returns the exit code; they are those of package cli.
func Main(env cli.Env, o Options) int {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Stdin == nil {
		o.Stdin = bytes.NewReader(nil)
	}
	if len(env.Args) == 1 && env.Args[0] == "--version" {
		env.Args = []string{"version"}
	}
	s := &session{env: env, o: o}
	defer s.close()
	root := s.root()
	root.SetArgs(append([]string{}, env.Args...))
	root.SetIn(o.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	if len(env.Args) > 0 && (env.Args[0] == cobra.ShellCompRequestCmd || env.Args[0] == cobra.ShellCompNoDescRequestCmd) {
		root.SetErr(io.Discard) // a shell that completes wants no remarks
		unquote(root)
	}
	ran, err := root.ExecuteC()
	if err == nil {
		err = s.wrong
	}
	if err == nil {
		return s.code
	}
	path := string(env.Program)
	if ran != nil {
		path = ran.CommandPath()
	}
	var wrong *misuseError
	if !errors.As(err, &wrong) {
		err = misuse("%s", plainAll(err.Error()))
	}
	s.tell("%s: %v\nSee %s --help.\n", env.Program, err, path)
	return cli.Misuse
}

// unquote takes the marks away that name a flag's value in its help: a shell would show them.
func unquote(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, sub := range c.Commands() {
		unquote(sub)
	}
}

// root makes the tree of commands.
func (s *session) root() *cobra.Command {
	root := s.group(&cobra.Command{
		Use:   string(config.Desk),
		Short: "Reader of stored decisions, and the operator's desk: why was this denied, and what became of that record",
		Long: "Reader of what is stored, and the operator's desk.\n\n" +
			"why, diff, logs and stats explain, compare, search and count stored decisions, and only read. archive takes days out of the\n" +
			"table, restore brings them back.\n\n" +
			"What the consumer and the replayer could not store lies in a ledger in Postgres, a row for each dead letter. `docket desk`\n" +
			"fills it, puts back what is retried and learns how that ended, and serves all of it over HTTP; dlq, jobs and report look\n" +
			"at the ledger and decide, straight in Postgres. Nothing is changed without the name of who decided it.",
		Example: `  # why was this decision denied, by which policy, and since when; what was denied of late; how often, by path
  docket why e5e72bf0-077f-4b3a-8169-32d13cfbaa31
  docket logs --denied --since 2h --match input:/user=alice
  docket stats --since 7d --by path

  # days older than that to files or object storage, verified, then dropped; and one of them back
  docket archive --older-than 90d --dry-run
  docket restore --day 2026-08-01

  # what is wrong, by what failed alike; what one of them says, and what can be done
  docket dlq groups
  docket dlq list --state FAILED --since 2h
  docket dlq show 3f9a0c1e77b2

  # once the cause is mended: would they be stored now? then put them back, 50 a second
  export DOCKET_OPERATOR=mara
  docket dlq retry --fingerprint 8d0e3f21 --dry-run
  docket dlq retry --fingerprint 8d0e3f21 --rate 50 --reason 'check on path widened'

  # one that will never be stored
  docket dlq resolve 3f9a0c1e77b2 --note 'a test of the staging producer'

  # the daemon, and where to begin
  docket migrate && docket desk`,
		SilenceErrors: true, SilenceUsage: true,
	})
	root.PersistentFlags().BoolVar(&s.asJSON, "json", false, "print JSON, whatever standard output is")
	root.PersistentFlags().BoolVar(&s.wide, "wide", false, "cut nothing on a terminal: whole ids, all columns")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(s.help)
	root.AddCommand(s.dlq(), s.jobs(), s.report(), s.desk())
	root.AddCommand(s.logs(), s.stats(), s.why(), s.compare())
	root.AddCommand(s.archive(), s.restore())
	root.AddCommand(s.reused()...)
	root.AddCommand(s.settingsTopic())
	root.SetHelpCommand(s.helpCommand(root))
	return root
}

// group makes a command that does nothing but hold others.
func (s *session) group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.AddCommand(commands...)
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "help" {
			return s.explain(c, args)
		}
		return noCommand(c, args[0])
	}
	return c
}

// noCommand says that c holds no command of that name, and which one was meant.
func noCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return misuse("there is no command %s%s", quoted(strings.Join(append(strings.Fields(c.CommandPath())[1:], name), " ")), meant(config.Nearest(name, names)))
}

// explain shows the help of the command that args name below c.
func (s *session) explain(c *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	found, rest, err := c.Find(args)
	switch {
	case err == nil && len(rest) == 0:
		found.InitDefaultHelpFlag()
		s.page(found)
		return nil
	case err == nil && found.HasSubCommands():
		return noCommand(found, rest[0])
	case err == nil:
		return misuse("unexpected argument %s", quoted(rest[0]))
	}
	return noCommand(c, args[0])
}

func meant(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// flagError says what is wrong with a flag, and which one was meant.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return noCommand(c, args[0]) // the flag is that of a command that there is not
	}
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		what := "a number"
		if wrong.GetFlag().Value.Type() == "bool" {
			what = "true or false"
		}
		return misuse("--%s has to be %s, and not %s", wrong.GetFlag().Name, what, quoted(wrong.GetValue()))
	}
	var none *pflag.NotExistError
	if !errors.As(err, &none) {
		return misuse("%s", plainAll(err.Error()))
	}
	name := none.GetSpecifiedName()
	if none.GetSpecifiedShortnames() != "" {
		return misuse("there is no flag %s", quoted("-"+name))
	}
	names := []string{"help"}
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := config.Nearest(name, names)
	if near != "" {
		near = "--" + near
	}
	return misuse("there is no flag %s%s", quoted("--"+name), meant(near))
}

// help is what --help does.
func (s *session) help(c *cobra.Command, _ []string) {
	if args := c.Flags().Args(); c.HasSubCommands() {
		s.wrong = s.explain(c, args)
		return
	}
	s.page(c)
}

// page prints the help of a command.
func (s *session) page(c *cobra.Command) {
	if c.DisableFlagParsing {
		// A command of package cli, which explains itself.
		_ = c.RunE(c, []string{"--help"})
		return
	}
	var b strings.Builder
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(text))
	if c.Runnable() && !c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUsage:\n  %s\n", c.UseLine())
	} else if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUsage:\n  %s COMMAND\n\nCommands:\n", c.CommandPath())
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "  %-*s %s\n", max(11, sub.NamePadding()), sub.Name(), sub.Short)
			}
		}
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	if flags := c.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags.FlagUsages())
	}
	if c.HasAvailableInheritedFlags() {
		fmt.Fprintf(&b, "\nFlags of all commands:\n%s", c.InheritedFlags().FlagUsages())
	} else if !c.HasParent() {
		fmt.Fprintf(&b, "\nFlags of all commands:\n%s", c.PersistentFlags().FlagUsages())
		b.WriteString("\nExit codes:\n  0  done, or stopped by a signal\n  1  failed, or not all of what was asked\n  2  wrong use or settings\n")
		b.WriteString("\nIt needs DOCKET_DATABASE_URL (or DOCKET_DATABASE_URL_FILE); `docket settings` lists them all.\n")
	}
	say(c.OutOrStdout(), "%s", b.String())
}

// helpCommand is `docket help`.
func (s *session) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Explain a command, or show this page",
		RunE: func(_ *cobra.Command, args []string) error { return s.explain(root, args) },
	}
}
