package tree

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
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
	env, written := cli.Written(env)
	env, noConfig := withConfig(env)
	env, asks, noDesk := withDesk(env)
	o.Asks = asks
	if len(env.Args) == 1 && env.Args[0] == "--version" {
		env.Args = []string{"version"}
	}
	env, o, err := withColor(env, o)
	env, f, wrong := withFormat(env, o.Programs)
	if err = cmp.Or(noConfig, noDesk, err, wrong); err != nil {
		term.Fprintf(env.Stderr, "%s: %v\nSee %s --help.\n", env.Program, err, env.Program)
		return cli.Misuse
	}
	o.Format = string(f.Format)
	if f.answer != nil || f.stream != nil {
		o.Terminal.Out = false
	}
	env, p := withPager(env, o)
	code := f.end(env, run(env, o))
	p.end(env.Signals)
	return written(code)
}

// run runs the command of the arguments, without the flags that Main takes.
func run(env cli.Env, o frame.Options) int {
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

// unquote takes the marks away that name a flag's value in its help: a shell would show them.
func unquote(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	for _, sub := range c.Commands() {
		unquote(sub)
	}
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
