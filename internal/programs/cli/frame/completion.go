package frame

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli/term"
)

// completing is how long a shell waits for suggestions. Whatever goes wrong, it gets none and no remark.
const completing = time.Second

// Completion suggests words to a shell.
type Completion = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// Suggested is how many ids and jobs are suggested.
const Suggested = 100

// Suggest makes a completion of values that are stored. from gives suggestions, each with a description behind a tab.
func (call Call) Suggest(from func(ctx context.Context, begun string) ([]string, error)) Completion {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const nothingElse = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		quiet := call.Env
		quiet.Stderr = io.Discard
		call.Env = quiet
		if err := call.Open(); err != nil {
			return nil, nothingElse
		}
		ctx, cancel := context.WithTimeout(context.Background(), completing)
		defer cancel()
		all, err := from(ctx, begun)
		if err != nil {
			return nil, nothingElse
		}
		var fit []string
		for _, one := range all {
			word, _, _ := strings.Cut(one, "\t")
			if strings.HasPrefix(word, begun) && !slices.Contains(args, word) && !slices.Contains(fit, one) && word == term.Line(word) {
				fit = append(fit, one)
			}
		}
		return fit, nothingElse
	}
}

// Fixed suggests words that are known beforehand.
func Fixed(words []string) Completion {
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

// Complete teaches a shell the values of flags.
func Complete(c *cobra.Command, flags map[string]Completion) {
	for flag, how := range flags {
		if err := c.RegisterFlagCompletionFunc(flag, how); err != nil {
			panic(err) // a flag that is not declared
		}
	}
}
