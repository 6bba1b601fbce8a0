// Package contextcmd has the commands of docket context.
package contextcmd

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/client"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/contexts"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

// names are the forms of a name: it is a word of a command.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func read(call frame.Call) (*contexts.File, error) {
	return contexts.Read(contexts.Path(call.Env.Environ))
}

// oneName is an argument that names a context.
func oneName(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return frame.Misuse("give the name of a context")
	case len(args) > 1:
		return frame.Misuse("unexpected argument %s", term.Quoted(args[1]))
	case !names.MatchString(args[0]):
		return frame.Misuse("%s is no name: use letters, digits, dots, dashes and underscores, 64 at most", term.Quoted(args[0]))
	}
	return nil
}

func complete(call frame.Call) frame.Completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		f, err := read(call)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return frame.Fixed(f.Names())(c, args, begun)
	}
}

// missing says that there is no such context.
func missing(f *contexts.File, name string) error {
	return frame.Misuse("there is no context %s%s", term.Quoted(name), cli.Meant(config.Nearest(name, f.Names())))
}

// add is docket context add.
type add struct {
	frame.Call
	context contexts.Context
	clear   bool
}

// Add makes the command that adds a context.
func Add(call frame.Call) *cobra.Command {
	a := &add{Call: call}
	c := &cobra.Command{
		Use: "add NAME --server URL [flags]", Short: "Add a context, or replace the one of this name", DisableFlagsInUseLine: true,
		Long: "Add a context, or replace the one of this name. The first one becomes the current one. Nothing is sent.\n\n" +
			"The token stays in its file, which is read at each command. --token-stdin writes the token itself into the\n" +
			"file of contexts, in clear.",
		Example: "  docket context add prod --server https://desk.example:8083 --token-file ~/.docket-token\n  docket context add lab --server http://127.0.0.1:8083 --token-file token",
		Args:    oneName, ValidArgsFunction: complete(call),
	}
	f := c.Flags()
	f.StringVar(&a.context.Server, "server", "", "the desk at this `URL` (required)")
	f.StringVar(&a.context.TokenFile, "token-file", "", "`FILE` with your token")
	f.BoolVar(&a.clear, "token-stdin", false, "read the token from standard input, and keep it in clear")
	f.StringVar(&a.context.CAFile, "ca-file", "", "PEM `FILE` with the authorities for the desk's certificate")
	f.StringVar(&a.context.CertFile, "cert-file", "", "PEM `FILE` with your client certificate")
	f.StringVar(&a.context.KeyFile, "key-file", "", "PEM `FILE` with its private key")
	f.BoolVar(&a.context.Plain, "plain", false, "allow http:// to another host: the token is sent in clear")
	c.MarkFlagsMutuallyExclusive("token-file", "token-stdin")
	frame.Usage(c, nil, "", "")
	c.RunE = a.Direct(func(args []string) error { return a.add(args[0]) })
	return c
}

func (a *add) add(name string) error {
	a.context.Name = name
	if a.context.Server == "" {
		return frame.Misuse("no server: give --server URL")
	}
	for _, path := range []*string{&a.context.TokenFile, &a.context.CAFile, &a.context.CertFile, &a.context.KeyFile} {
		if *path == "" {
			continue
		}
		whole, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("find %s: %w", term.Quoted(*path), err)
		}
		*path = whole // the command is given elsewhere next time
	}
	if a.clear {
		text, err := io.ReadAll(io.LimitReader(a.In, 64<<10))
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		if a.context.Token = strings.TrimSpace(string(text)); a.context.Token == "" {
			return frame.Misuse("standard input has no token")
		}
	}
	c := a.context
	if _, err := a.Connect(&contexts.Target{Context: name, Config: client.Config{Server: c.Server, Token: c.Token, CA: c.CAFile, Cert: c.CertFile, Key: c.KeyFile, Plain: c.Plain}}); err != nil {
		return err
	}
	f, err := read(a.Call)
	if err != nil {
		return err
	}
	f.Put(c)
	if f.Current == "" {
		f.Current = name
	}
	if err := f.Write(); err != nil {
		return err
	}
	a.Tell("context %s is added\n", name)
	if f.Current != name {
		a.Tell("to use it: docket context use %s\n", name)
	}
	return nil
}

// Use makes the command that chooses a context.
func Use(call frame.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Args: oneName, ValidArgsFunction: complete(call), DisableFlagsInUseLine: true,
		Example: "  docket context use prod",
	}
	frame.Usage(c, nil, "", "")
	c.RunE = call.Direct(func(args []string) error {
		f, err := read(call)
		switch {
		case err != nil:
			return err
		case f.Find(args[0]) == nil:
			return missing(f, args[0])
		}
		f.Current = args[0]
		if err := f.Write(); err != nil {
			return err
		}
		call.Tell("commands ask the desk at %s now\n", f.Find(args[0]).Shown())
		return nil
	})
	return c
}

// Remove makes the command that removes a context.
func Remove(call frame.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove a context; files with tokens stay", Args: oneName, ValidArgsFunction: complete(call), DisableFlagsInUseLine: true,
		Example: "  docket context remove lab",
	}
	frame.Usage(c, nil, "", "")
	c.RunE = call.Direct(func(args []string) error {
		f, err := read(call)
		if err != nil {
			return err
		}
		if !f.Remove(args[0]) {
			return missing(f, args[0])
		}
		return f.Write()
	})
	return c
}

// jsonContext is a context without its token.
type jsonContext struct {
	Name      string `json:"name"`
	Server    string `json:"server"`
	Current   bool   `json:"current"`
	TokenFile string `json:"token_file,omitempty"`
	InClear   bool   `json:"token_in_clear"`
	CAFile    string `json:"ca_file,omitempty"`
	CertFile  string `json:"cert_file,omitempty"`
}

// List makes the command that lists contexts.
func List(call frame.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List contexts; * marks the current one", Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions, DisableFlagsInUseLine: true,
		Example: "  docket context list",
	}
	frame.Usage(c, nil, "", "")
	c.RunE = call.Direct(func([]string) error {
		f, err := read(call)
		if err != nil {
			return err
		}
		list(call, f)
		return nil
	})
	return c
}

func list(call frame.Call, f *contexts.File) {
	if call.AsJSON {
		call.Print(frame.ListOf(f.Contexts, "", func(c contexts.Context) jsonContext {
			return jsonContext{c.Name, c.Shown(), c.Name == f.Current, c.TokenFile, c.Token != "", c.CAFile, c.CertFile}
		}))
		return
	}
	var rows [][]term.Cell
	for _, c := range f.Contexts {
		mark, token := "", c.TokenFile
		if c.Name == f.Current {
			mark = "*"
		}
		if c.Token != "" {
			token = "(in clear)"
		}
		rows = append(rows, []term.Cell{{Full: mark}, {Full: c.Name}, {Full: c.Shown()}, {Full: token}})
	}
	call.Table([]term.Column{{Title: ""}, {Title: "name"}, {Title: "server", Least: 20}, {Title: "token", Rank: 1, Least: 12}}, rows, "")
	if len(rows) == 0 {
		call.Tell("no contexts; docket context add NAME --server URL --token-file FILE adds one\n")
	}
}
