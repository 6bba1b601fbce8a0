package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/logs"
	"docket/internal/programs/cli/output"
	"docket/internal/programs/cli/term"
)

const formatFlag = "output"

func declareFormat(flags *pflag.FlagSet) {
	flags.StringP(formatFlag, "o", "", "print as `FORMAT`: "+strings.Join(output.Formats(), ", "))
}

// form is the format of a call, and the writer of its results while it runs.
type form struct {
	output.Format
	answer *bytes.Buffer  // nil: the command writes the format itself, or a stream does
	stream *output.Stream // nil: nothing is written while it comes
	out    io.Writer
}

// withFormat takes -o FORMAT out of the arguments. A command prints JSON for the formats that are made from it.
func withFormat(env cli.Env, programs []frame.Program) (cli.Env, form, error) {
	f := form{out: env.Stdout}
	daemon := func(name string) bool {
		return slices.ContainsFunc(programs, func(p frame.Program) bool { return p.Name == name })
	}
	if daemon(append(wordsOf(env.Args), "")[0]) {
		return env, f, nil // it reads its flags itself, and has others that begin with -o
	}
	given, is, err := takeFlag(&env, formatFlag)
	for err == nil {
		short, also := takeShort(&env, "o")
		if !also {
			break
		}
		if is && short != given {
			err = frame.Misuse("-o has two values, %s and %s; give one", term.Quoted(given), term.Quoted(short))
		}
		given, is = short, true
	}
	if !is || err != nil {
		return env, f, err
	}
	chosen, err := frame.Among("format", given, output.Formats())
	if err != nil {
		return env, f, err
	}
	f.Format = output.Format(chosen)
	words := wordsOf(env.Args)
	first := append(words, "")[0]
	flags := env.Args
	if i := slices.Index(flags, "--"); i >= 0 {
		flags = flags[:i]
	}
	follows := slices.ContainsFunc(flags, func(arg string) bool { return arg == "-f" || arg == "--follow" || arg == "--watch" })
	switch {
	case daemon(first) || slices.Contains([]string{"desk", "demo", "migrate", "health", "completion", "help"}, first):
		return env, f, frame.Misuse("-o is for commands that print answers, and not for %s", first)
	case slices.Contains(flags, "--json") || slices.Contains(flags, "--lines"):
		return env, f, frame.Misuse("-o cannot be used with --json and --lines: both choose a format")
	case f.Format == output.Wide:
		env.Args = with(env.Args, "--wide")
	case f.Format == output.Table:
	case follows && f.Format != output.JSON && f.Format != output.Lines:
		return env, f, frame.Misuse("a command that follows prints table, wide, json or jsonl")
	case follows:
		env.Args = with(env.Args, "--json") // an object for each line
	case f.Format == output.Lines && first == "logs":
		env.Args = with(env.Args, "--lines") // of any length
	case (f.Format == output.CSV || f.Format == output.ID) && first == "logs":
		f.stream = output.NewStream(f.out, f.Format, logs.Columns(slices.Contains(flags, "--full")))
		env.Stdout, env.Args = f.stream, with(env.Args, "--lines")
	default:
		f.answer = &bytes.Buffer{}
		env.Stdout, env.Args = f.answer, with(env.Args, "--json")
	}
	return env, f, nil
}

// end writes the answer in its format, and returns the exit code.
func (f form) end(env cli.Env, code int) int {
	if f.stream != nil && f.stream.Close() != nil && code == cli.Done {
		return cli.Failed
	}
	if f.answer == nil || f.answer.Len() == 0 {
		return code
	}
	for _, line := range output.Lacks(f.Format, f.answer.Bytes()) {
		_, _ = fmt.Fprintf(env.Stderr, "%s: %s\n", env.Program, line) // nobody reads any more
	}
	var none *output.NoIDsError
	switch err := output.Write(f.out, f.Format, f.answer.Bytes()); {
	case errors.As(err, &none):
		_, _ = fmt.Fprintf(env.Stderr, "%s: %v\n", env.Program, err) // nobody reads any more
		return cli.Misuse
	case err != nil && code == cli.Done:
		return cli.Failed
	}
	return code
}

// takeShort is takeFlag for a short flag: -o json, -o=json or -ojson.
func takeShort(env *cli.Env, name string) (value string, given bool) {
	last := len(env.Args)
	if last > 0 && (env.Args[0] == cobra.ShellCompRequestCmd || env.Args[0] == cobra.ShellCompNoDescRequestCmd) {
		last--
	}
	for i := 0; i < last && env.Args[i] != "--"; i++ {
		rest, is := strings.CutPrefix(env.Args[i], "-"+name)
		switch {
		case !is || strings.HasPrefix(env.Args[i], "--"):
		case rest == "" && i+1 < last:
			value = env.Args[i+1]
			env.Args = slices.Delete(slices.Clone(env.Args), i, i+2)
			return value, true
		case rest != "":
			env.Args = slices.Delete(slices.Clone(env.Args), i, i+1)
			return strings.TrimPrefix(rest, "="), true
		}
	}
	return "", false
}

// with adds a flag before the arguments that are no flags.
func with(args []string, flag string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return slices.Insert(slices.Clone(args), i, flag)
	}
	return append(slices.Clone(args), flag)
}

// wordsOf are the arguments that are no flags.
func wordsOf(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
}
