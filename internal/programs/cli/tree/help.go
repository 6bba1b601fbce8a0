package tree

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

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
	b.WriteString("\nGeneral flags:\n  -h, --help              show this help\n")
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
		case f.Name == "help" || c.Root().PersistentFlags().Lookup(f.Name) == f:
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
