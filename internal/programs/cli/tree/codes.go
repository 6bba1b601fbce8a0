package tree

import (
	"slices"

	"github.com/spf13/cobra"

	"docket/internal/errclass"
	"docket/internal/programs/cli/frame"
)

// completeReused is for the commands of package cli.
func completeReused(name string) frame.Completion {
	if name != "classify" {
		return frame.Fixed(nil)
	}
	var codes []string
	for _, v := range errclass.Table() {
		if word := v.Code + "\t" + v.Name; !slices.Contains(codes, word) {
			codes = append(codes, word)
		}
	}
	return frame.Fixed(codes)
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
			frame.Usage(shell, nil, "", "")
		}
	}
}
