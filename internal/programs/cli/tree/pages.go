package tree

import (
	"bytes"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
)

// Page is the help of one command.
type Page struct {
	Name  string // with all its words, like "docket dlq list"
	Short string
	Group string // of the command right below docket that it belongs to; empty for docket itself
	Text  string // the text of --help
}

// Pages are the help of all commands, each behind the one that holds it.
func Pages(env cli.Env, o frame.Options) []Page {
	var text bytes.Buffer
	env.Stdout, env.Stderr = &text, &text
	t := &tree{Call: frame.New(env, o)}
	root := t.root()
	root.SetOut(&text)
	root.SetErr(&text)
	describeCompletion(root)
	titles := map[string]string{}
	for _, g := range root.Groups() {
		titles[g.ID] = g.Title
	}
	var all []Page
	var walk func(c *cobra.Command, group string)
	walk = func(c *cobra.Command, group string) {
		text.Reset()
		c.InitDefaultHelpFlag()
		t.page(c)
		all = append(all, Page{c.CommandPath(), c.Short, group, text.String()})
		for _, sub := range c.Commands() {
			if !sub.IsAvailableCommand() {
				continue
			}
			of := group
			if !c.HasParent() {
				of = titles[sub.GroupID]
			}
			walk(sub, of)
		}
	}
	walk(root, "")
	return all
}
