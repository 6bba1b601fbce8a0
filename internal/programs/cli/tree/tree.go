package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/archive"
	"docket/internal/programs/cli/edits"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/jobs"
	"docket/internal/programs/cli/letters"
	"docket/internal/programs/cli/logs"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

// Main does what the command line says and returns the exit code; they are those of package cli.
func Main(env cli.Env, o frame.Options) int {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Stdin == nil {
		o.Stdin = bytes.NewReader(nil)
	}
	if len(env.Args) == 1 && env.Args[0] == "--version" {
		env.Args = []string{"version"}
	}
	env = withConfig(env)
	t := &tree{Call: frame.New(env, o)}
	defer t.Close()
	root := t.root()
	root.SetArgs(append([]string{}, env.Args...))
	root.SetIn(o.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	describeCompletion(root) // it writes where the root does now
	if len(env.Args) > 0 && (env.Args[0] == cobra.ShellCompRequestCmd || env.Args[0] == cobra.ShellCompNoDescRequestCmd) {
		root.SetErr(io.Discard) // a shell that completes shows no remarks
		unquote(root)
	}
	ran, err := root.ExecuteC()
	if err == nil {
		err = t.wrong
	}
	if err == nil {
		return t.ExitCode()
	}
	path := string(env.Program)
	if ran != nil {
		path = ran.CommandPath()
	}
	var wrong *frame.MisuseError
	if !errors.As(err, &wrong) {
		err = frame.Misuse("%s", term.Line(err.Error()))
	}
	t.Tell("%s: %v\nSee %s --help.\n", env.Program, err, path)
	return cli.Misuse
}

// tree is all commands of docket.
type tree struct {
	frame.Call
	wrong error // an unknown command that --help was asked about
}

// unquote takes the marks away that name a flag's value in its help: a shell would show them.
func unquote(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, sub := range c.Commands() {
		unquote(sub)
	}
}

// root makes the tree of commands.
func (t *tree) root() *cobra.Command {
	root := t.group(&cobra.Command{
		Use:   string(config.Desk),
		Short: "Store, search and explain OPA decisions; manage dead letters",
		Long: "Store, search and explain OPA decisions; manage dead letters.\n\n" +
			"`docket consume` stores decision logs from Kafka in Postgres, where they are read.  Records that could not be stored are dead letters: `docket desk`\n" +
			"enters them into a ledger in Postgres; the dlq commands show, retry and close them.\n" +
			"Commands that change dead letters, jobs or archives need --operator (or DOCKET_OPERATOR); the name goes\n" +
			"into the audit log.",
		Example: `  # find a denied decision; explain it: why, by which policy, since when
  docket logs --denied --since 2h --match input:/user=alice
  docket why e5e72bf0

  # see dead letters by cause; explain one; after the cause is fixed: test a retry, then retry
  docket dlq groups
  docket dlq show 3f9a0c1e77b2
  docket dlq retry --fingerprint 8d0e3f21 --dry-run
  docket dlq retry --fingerprint 8d0e3f21 --rate 50 --operator mara --reason 'check widened'

  # move days older than 90 days to files or object storage; load one back
  docket archive --older-than 90d --dry-run
  docket archive --older-than 90d --to /srv/docket-archive --operator mara
  docket restore --day 2026-08-01 --from /srv/docket-archive --operator mara

  # set up; run the consumer, and the desk beside it
  docket migrate && docket check && docket consume
  docket desk`,
		SilenceErrors: true, SilenceUsage: true,
	})
	root.PersistentFlags().BoolVar(&t.AsJSON, "json", false, "print JSON")
	root.PersistentFlags().BoolVar(&t.Wide, "wide", false, "print whole ids and all columns, also on a narrow terminal")
	root.PersistentFlags().String(configFlag, "", "YAML `FILE` with settings; the environment wins (or DOCKET_CONFIG)")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(t.help)
	reused := t.reused()
	for _, g := range []struct {
		id, Title string
		commands  []*cobra.Command
	}{
		{"read", "Read decisions", []*cobra.Command{logs.Search(t.Call), logs.Why(t.Call), logs.Diff(t.Call), logs.Stats(t.Call), reused["where-is"]}},
		{"letters", "Dead letters", []*cobra.Command{t.dlq(), t.jobs(), letters.Report(t.Call), reused["classify"]}},
		{"archive", "Archive", []*cobra.Command{archive.Command(t.Call), archive.Restore(t.Call)}},
		{"operate", "Operate", []*cobra.Command{reused["check"], reused["migrate"], reused["verify"], reused["health"], settingsTopic(t.Call), t.config(), reused["version"]}},
		{"run", "Run", t.daemons()},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.Title})
		for _, c := range g.commands {
			c.GroupID = g.id
		}
		root.AddCommand(g.commands...)
	}
	root.SetHelpCommandGroupID("operate")
	root.SetCompletionCommandGroupID("operate")
	root.SetHelpCommand(t.helpCommand(root))
	inOrder(root)
	return root
}

// dlq holds the commands on dead letters.
func (t *tree) dlq() *cobra.Command {
	return t.group(&cobra.Command{
		Use: "dlq", Short: "List, explain, retry, edit and resolve dead letters",
		Long: "List, explain, retry, edit and resolve dead letters: records that could not be stored.\n\n" +
			"Name them by id (its first 6 or more characters are enough), or select many by filter flags.",
		Example: "  docket dlq groups\n  docket dlq show 3f9a0c1e77b2\n  docket dlq retry 3f9a0c1e77b2 --dry-run",
	}, letters.List(t.Call), letters.Groups(t.Call), letters.Show(t.Call), letters.Retry(t.Call), edits.Edit(t.Call), edits.Proposals(t.Call), edits.Approve(t.Call), edits.Reject(t.Call), letters.Resolve(t.Call), letters.Surplus(t.Call))
}

// jobs holds the commands on jobs.
func (t *tree) jobs() *cobra.Command {
	return t.group(&cobra.Command{
		Use: "jobs", Short: "List, show, stop and resume jobs: retries and resolves of many dead letters",
		Long: "List, show, stop and resume jobs.\n\n" +
			"`docket dlq retry` and `docket dlq resolve` with filter flags create a job. A running desk works on one\n" +
			"job at a time, also after your command has ended.",
		Example: "  docket jobs list\n  docket jobs show 12 --watch",
	}, jobs.List(t.Call), jobs.Show(t.Call), jobs.Stop(t.Call), jobs.Resume(t.Call))
}

// Commands are shown in the order in which they are added.
func init() { cobra.EnableCommandSorting = false }

// inOrder shows flags in the order in which they are declared.
func inOrder(c *cobra.Command) {
	c.Flags().SortFlags = false
	for _, sub := range c.Commands() {
		inOrder(sub)
	}
}

// group makes a command that does nothing but hold others.
func (t *tree) group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.AddCommand(commands...)
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "help" {
			return t.explain(c, args)
		}
		return frame.NoCommand(c, args[0])
	}
	return c
}

// explain shows the help of the command that args name below c.
func (t *tree) explain(c *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	found, rest, err := c.Find(args)
	switch {
	case err == nil && len(rest) == 0:
		found.InitDefaultHelpFlag()
		t.page(found)
		return nil
	case err == nil && found.HasSubCommands():
		return frame.NoCommand(found, rest[0])
	case err == nil:
		return frame.Misuse("unexpected argument %s", term.Quoted(rest[0]))
	}
	return frame.NoCommand(c, args[0])
}

// flagError says what is wrong with a flag, and which one was meant.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return frame.NoCommand(c, args[0]) // the flag is that of a command that there is not
	}
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		what := "a number"
		if wrong.GetFlag().Value.Type() == "bool" {
			what = "true or false"
		}
		return frame.Misuse("--%s must be %s, not %s", wrong.GetFlag().Name, what, term.Quoted(wrong.GetValue()))
	}
	var none *pflag.NotExistError
	if !errors.As(err, &none) {
		return frame.Misuse("%s", term.Line(err.Error()))
	}
	name := none.GetSpecifiedName()
	if none.GetSpecifiedShortnames() != "" {
		return frame.Misuse("unknown flag %s", term.Quoted("-"+name))
	}
	names := []string{"help"}
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := config.Nearest(name, names)
	if near != "" {
		near = "--" + near
	}
	return frame.Misuse("unknown flag %s%s", term.Quoted("--"+name), cli.Meant(near))
}

// help is what --help does.
func (t *tree) help(c *cobra.Command, _ []string) {
	if args := c.Flags().Args(); c.HasSubCommands() {
		t.wrong = t.explain(c, args)
		return
	}
	t.page(c)
}

// helpWidth is how wide a line of a list of flags is.
const helpWidth = 100

// page prints the help of a command: examples before flags, and what a value looks like once, behind the flags.
func (t *tree) page(c *cobra.Command) {
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
	own, filters := flagsOf(c)
	fmt.Fprintf(&b, "%s\n\nUsage:\n", cli.Folded(text, ""))
	if !c.HasAvailableSubCommands() || own.HasFlags() && c.HasParent() {
		fmt.Fprintf(&b, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND [flags]\n", c.CommandPath())
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	commands(&b, c)
	if own.HasFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", own.FlagUsagesWrapped(helpWidth))
	}
	if filters.HasFlags() {
		fmt.Fprintf(&b, "\nFilter flags:\n%s", filters.FlagUsagesWrapped(helpWidth))
	}
	values(&b, c.LocalFlags())
	b.WriteString("\nGeneral flags:\n  -h, --help          show this help\n")
	general := c.Root().PersistentFlags().FlagUsages()
	if !c.HasParent() {
		general = strings.Replace(general, "print JSON\n", "print JSON; not for desk, health and migrate\n", 1)
	}
	b.WriteString(general)
	if !c.HasParent() {
		b.WriteString("\nSettings come from the environment and from --config. DOCKET_DATABASE_URL (or\nDOCKET_DATABASE_URL_FILE) is required. " +
			"Kafka is at DOCKET_KAFKA_BROKERS (default\nlocalhost:9092). `docket settings` lists all settings.\n")
		b.WriteString(cli.ExitText("done, or stopped by a signal", "failed, or not everything was done", true))
		b.WriteString("\n`docket COMMAND --help` shows the flags, examples and exit codes of a command.\n")
	}
	if about := c.Annotations; about[frame.Using] != "" {
		b.WriteString(cli.UsesText(cli.Env{Program: config.Desk}, strings.Fields(about[frame.Using])...))
		b.WriteString(cli.ExitText(about[frame.DoneText], about[frame.FailedText], len(strings.Fields(about[frame.Using])) > 0))
	}
	_, _ = io.WriteString(c.OutOrStdout(), b.String())
}

// flagsOf are the flags of a command, without --help: those that filter what it works on, and the others.
func flagsOf(c *cobra.Command) (own, filters *pflag.FlagSet) {
	own, filters = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags, filters.SortFlags = false, false
	c.LocalNonPersistentFlags() // merges them
	c.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Name == "help" || c.Root().PersistentFlags().Lookup(f.Name) != nil:
		case f.Annotations[frame.Filtering] != nil:
			filters.AddFlag(f)
		default:
			own.AddFlag(f)
		}
	})
	return own, filters
}

// commands lists those that c holds, in their groups.
func commands(b *strings.Builder, c *cobra.Command) {
	groups := c.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	for _, g := range groups {
		titled := false
		for _, sub := range c.Commands() {
			if sub.GroupID != g.ID || !sub.IsAvailableCommand() && sub.Name() != "help" {
				continue
			}
			if !titled {
				fmt.Fprintf(b, "\n%s:\n", g.Title)
				titled = true
			}
			fmt.Fprintf(b, "  %-*s %s\n", max(11, sub.NamePadding()), sub.Name(), sub.Short)
		}
	}
}

// valueTexts explain the values of flags and arguments, each once for all commands.
var valueTexts = []struct{ name, text string }{
	{"TIME", cli.TimeText},
	{"DURATION", "500ms, 2s or 1m."},
	{"MATCH", "input, result or raw (the whole decision), a JSON pointer into it, and a value as JSON or text: input:/user=alice, result:/allow=true, raw:/labels/app=web. Without =VALUE: anything there."},
	{"SUBJECT", "requested_by, requested_by:host (without the port), label:NAME or input:/POINTER."},
	{"CODE", "a SQLSTATE like 23514, or a code of Docket like too_large; `docket classify CODE` explains it."},
	{"STATE", "PENDING: waits for a retry. PROCESSING: a retry is in progress. FAILED: its automatic retries are used up. RESOLVED: it is stored, or a person closed it."},
	{"KIND", "decode: not a valid decision. data: the table refuses it. conflict: its decision_id is stored with another payload. transient: the database could not store it at that moment. exhausted: the replayer gave up. foreign: nothing proves that Docket wrote it."},
	{"PLACE", "a directory, or s3://BUCKET/PREFIX with the settings DOCKET_ARCHIVE_S3_*."},
}

// values explains what the flags take.
func values(b *strings.Builder, flags *pflag.FlagSet) {
	taken := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		taken[name] = true
	})
	begun := false
	for _, v := range valueTexts {
		if !taken[v.name] {
			continue
		}
		if !begun {
			b.WriteString("\nValues:\n")
			begun = true
		}
		fmt.Fprintf(b, "  %-8s %s\n", v.name, cli.Folded(v.text, strings.Repeat(" ", 11)))
	}
}

// helpCommand is `docket help`.
func (t *tree) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show help for a command, or this page",
		RunE: func(_ *cobra.Command, args []string) error { return t.explain(root, args) },
	}
}
