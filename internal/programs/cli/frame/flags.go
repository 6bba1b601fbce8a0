package frame

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/history/reader"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

// The annotations of a command that its help shows.
const (
	Using      = "uses"   // the settings that say what it connects to, by space; a space alone: it needs none
	DoneText   = "done"   // when it exits with 0
	FailedText = "failed" // when it exits with 1
)

// Usage notes which settings say what a command connects to, and what its exit codes 0 and 1 mean; empty: done and failed.
func Usage(c *cobra.Command, settings []string, done, failed string) {
	c.Annotations = map[string]string{Using: strings.Join(settings, " ") + " ", DoneText: done, FailedText: failed}
}

// Filtering marks flags that choose what a command works on.
const Filtering = "filter"

// MarkFilters puts flags under "Filter flags" in the help.
func MarkFilters(flags *pflag.FlagSet, names []string) {
	for _, name := range names {
		if flags.Lookup(name) == nil {
			continue
		}
		if err := flags.SetAnnotation(name, Filtering, []string{"yes"}); err != nil {
			panic(err) // it is there
		}
	}
}

// NoArgs is cobra.NoArgs with the words of docket.
func NoArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && c.HasSubCommands():
		return NoCommand(c, args[0])
	case len(args) > 0:
		return Misuse("unexpected argument %s", term.Quoted(args[0]))
	}
	return nil
}

// NoCommand is the error for a command that c does not have, with the nearest one.
func NoCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return Misuse("unknown command %s%s", term.Quoted(strings.Join(append(strings.Fields(c.CommandPath())[1:], name), " ")), cli.Meant(config.Nearest(name, names)))
}

// Among is given where it is one of the choices.
func Among(what, given string, choices []string) (string, error) {
	for _, choice := range choices {
		if given == choice {
			return choice, nil
		}
	}
	return "", Misuse("unknown %s %s%s (choose from %s)", what, term.Quoted(given), cli.Meant(config.Nearest(given, choices)), strings.Join(choices, ", "))
}

// TimeWords are suggested for a time.
var TimeWords = []string{"1h", "1d", "7d", "today", "yesterday"}

// Between are the ends of a range of time, zero where there is none.
func Between(from, to string, now time.Time) (since, until time.Time, err error) {
	if since, err = point("--since", from, now); err != nil {
		return since, until, err
	}
	if until, err = point("--until", to, now); err != nil {
		return since, until, err
	}
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return since, until, Misuse("--since %s is not before --until %s", term.Stamp(since), term.Stamp(until))
	}
	return since, until, nil
}

func point(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := reader.ParseTime(text, now)
	if err != nil {
		return t, Misuse("%s %s is not a time: %v", flag, term.Quoted(text), err)
	}
	return t, nil
}
