package deskcli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/programs/cli"
	"docket/internal/service/config"
)

// completing is how long a shell waits for suggestions. Whatever goes wrong, it gets none and no remark.
const completing = time.Second

type completion = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// suggest makes a completion of what the ledger has. from gives suggestions, each with a description behind a tab.
func (s *session) suggest(from func(ctx context.Context, begun string) ([]string, error)) completion {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const nothingElse = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		quiet := s.env
		quiet.Stderr = io.Discard
		settings, ok := cli.Settings(quiet)
		if !ok {
			return nil, nothingElse
		}
		sys, err := s.o.Open(quiet, settings)
		if err != nil {
			return nil, nothingElse
		}
		s.settings, s.sys = settings, sys
		ctx, cancel := context.WithTimeout(context.Background(), completing)
		defer cancel()
		all, err := from(ctx, begun)
		if err != nil {
			return nil, nothingElse
		}
		var fit []string
		for _, one := range all {
			word, _, _ := strings.Cut(one, "\t")
			if strings.HasPrefix(word, begun) && !slices.Contains(args, word) && !slices.Contains(fit, one) && word == plainAll(word) {
				fit = append(fit, one)
			}
		}
		return fit, nothingElse
	}
}

func fixed(words []string) completion {
	return func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var fit []string
		for _, w := range words {
			if strings.HasPrefix(strings.ToLower(w), strings.ToLower(begun)) {
				fit = append(fit, w)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// suggested is how many ids and jobs are suggested.
const suggested = 100

func (s *session) completeIDs(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var filter ledger.Filter
	if c.Name() != "show" { // the others move letters
		filter.States = []ledger.State{ledger.Pending, ledger.Failed}
	}
	return s.suggest(func(ctx context.Context, begun string) ([]string, error) {
		list, err := s.sys.Book.List(ctx, filter, ledger.Page{Limit: suggested})
		if err != nil {
			return nil, err
		}
		entries := list.Entries
		if !slices.ContainsFunc(entries, func(e ledger.Entry) bool { return strings.HasPrefix(e.ID, begun) }) && len(begun) >= leastID {
			if e, err := s.sys.Book.Show(ctx, begun); err == nil {
				entries = append(entries, e)
			}
		}
		var out []string
		for _, e := range entries {
			word := short(e.ID, max(shortID, len(begun)))
			out = append(out, word+"\t"+plain(strings.Join([]string{string(e.State), e.Cause.Code, e.Path}, " ")))
		}
		return out, nil
	})(c, args, begun)
}

func (s *session) completeJobs(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.suggest(func(ctx context.Context, _ string) ([]string, error) {
		jobs, err := s.sys.Book.ListJobs(ctx, suggested)
		var out []string
		for _, j := range jobs {
			out = append(out, fmt.Sprintf("%d\t%s %s %s", j.ID, j.State, verbs[j.Act].name, plain(described(j.Filter))))
		}
		return out, err
	})(c, args, begun)
}

// ofGroups suggests what the groups of the ledger have.
func (s *session) ofGroups(of func(g ledger.Group) []string) completion {
	return s.suggest(func(ctx context.Context, _ string) ([]string, error) {
		groups, err := s.sys.Book.Groups(ctx, ledger.Filter{})
		var out []string
		for _, g := range groups {
			out = append(out, of(g)...)
		}
		return out, err
	})
}

// completeFilter teaches the shared filter flags.
func (s *session) completeFilter(c *cobra.Command) {
	for flag, complete := range map[string]completion{
		"fingerprint": s.ofGroups(func(g ledger.Group) []string {
			return []string{g.Fingerprint + "\t" + plain(fmt.Sprintf("%d open, %s %s", g.Open(), g.Code, where(g)))}
		}),
		"code":      s.ofGroups(func(g ledger.Group) []string { return []string{g.Code} }),
		"path":      s.ofGroups(func(g ledger.Group) []string { return g.Paths }),
		"kind":      fixed(kinds()),
		"state":     fixed(stateNames()),
		"since":     fixed(timeWords),
		"until":     fixed(timeWords),
		"topic":     fixed([]string{config.Lookup(s.env.Program, s.env.Environ, "DOCKET_KAFKA_TOPIC")}),
		"partition": fixed(nil),
	} {
		if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // a flag that is not declared
		}
	}
}

// completeReused is for the commands of package cli.
func (s *session) completeReused(name string) completion {
	if name != "classify" {
		return fixed(nil)
	}
	var codes []string
	for _, v := range errclass.Table() {
		if word := v.Code + "\t" + v.Name; !slices.Contains(codes, word) {
			codes = append(codes, word)
		}
	}
	return fixed(codes)
}

// describeCompletion adds the command that prints scripts for shells, with help like that of the other commands.
func describeCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	examples := map[string]string{
		"bash": "  # for this shell; needs the package bash-completion\n  source <(docket completion bash)\n\n" +
			"  # for every new shell, as root\n  docket completion bash > /etc/bash_completion.d/docket",
		"zsh": "  # for this shell\n  autoload -U compinit; compinit\n  source <(docket completion zsh)\n\n" +
			"  # for every new shell\n  docket completion zsh > \"${fpath[1]}/_docket\"",
		"fish": "  # for this shell\n  docket completion fish | source\n\n" +
			"  # for every new shell\n  docket completion fish > ~/.config/fish/completions/docket.fish",
		"powershell": "  # for this shell; for every new one, put the line into your profile\n  docket completion powershell | Out-String | Invoke-Expression",
	}
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Short = "Print a script that completes commands, flags and ids in your shell"
		c.Long = c.Short + ".\n\nThe script suggests ids, paths and codes from the database if DOCKET_DATABASE_URL is set in your shell. It waits for\n" +
			"them 1 s at most. `docket completion bash --help` shows how to load it."
		for _, shell := range c.Commands() {
			shell.Short = "Print the script for " + shell.Name()
			shell.Long, shell.Example = shell.Short+", to standard output.", examples[shell.Name()]
			usage(shell, nil, "", "")
		}
	}
}
