// Package cli runs the command line of every program: it finds the command, explains it, loads settings, runs it, and turns the
// result into an exit code.
//
// It stays free of signals and of the process's own environment: main hands both in.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"docket/internal/audit/check"
	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/programs/cli/term"
	"docket/internal/service/app"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
)

// Exit codes.
const (
	Done   = 0 // done, or stopped by a signal
	Failed = 1
	Misuse = 2 // wrong use or settings
)

// Env is the environment of a program.
type Env struct {
	Program config.Program
	// Name is how a person calls the program, like "docket consume"; empty: by the name of Program.
	Name    string
	Args    []string                    // without the program's name
	Environ []string                    // as os.Environ has it
	Stdout  io.Writer                   // results
	Stderr  io.Writer                   // complaints and the log
	Signals <-chan os.Signal            // asks to stop; the second one at once
	Options app.Options                 // of the program that is run
	Judges  config.Judges               // of settings, beside that of the database's URL
	Agree   func(config.Settings) error // refuses settings that contradict each other; may be nil
	// Unread says which files a command that only looks at settings leaves to the program, such as a pipe; may be nil.
	Unread func(config.Settings) []config.Complaint
	// AskDesk asks a desk where a record is, in place of the database and of Kafka; nil: no desk is asked. The answer is that
	// of the command: for people, for programs, and whether each decision has a home or is not read yet.
	AskDesk func(ctx context.Context, query string) (text string, report []byte, settled bool, err error)
	// AskCheck has a desk check what Docket relies on; nil: no desk is asked. The desk does not see the spools.
	AskCheck func(ctx context.Context) ([]CheckResult, error)
	// AskVerify has a desk verify; nil: no desk is asked. Without a time the desk chooses one. The answer is that of the command:
	// for people, for programs, and whether an invariant is broken. The desk does not see the spools of other hosts.
	AskVerify func(ctx context.Context, since time.Time, from []string, settled bool) (text string, report []byte, broken bool, err error)
	// Shelf opens where archives are; nil: the program does not read them.
	Shelf func(where string, s config.Settings) (archive.Shelf, error)
}

// CheckResult is the result of one check.
type CheckResult = check.Result

// CheckOf returns the result of a check that a desk ran. The level is ok, warn or fail.
func CheckOf(level, what, detail, hint string) CheckResult {
	return CheckResult{Level: check.Level(level), What: what, Detail: detail, Hint: hint}
}

// Called is how a person calls the program, in help and in complaints.
func (e Env) Called() string {
	if e.Name != "" {
		return e.Name
	}
	return string(e.Program)
}

// Command is one thing that a program can do.
type Command struct {
	Name    string
	Args    string    // the arguments, for the usage line
	Text    string    // one sentence, an imperative
	Example string    // lines of its own help, before the flags; with %s for the program
	More    string    // the rest of its own help
	Uses    []string  // settings that say what it connects to; none: it connects to nothing
	Exit    [2]string // when it exits with 0 and with 1; empty: as every command does
	// Flags declares its flags, nil where there are none.
	Flags func(*flag.FlagSet)
	// Run does it with what is left of the arguments. It returns the exit code.
	Run func(env Env, args []string) int
	// Raw commands read their flags, and --help, themselves.
	Raw bool
}

// runCommand is what a program does when no command is named.
const runCommand = "run"

// Main does what the command line says and returns the exit code.
func Main(env Env, commands []Command) int {
	env, end := Written(env)
	return end(do(env, commands))
}

// Written watches over standard output. end turns the exit code [Done] into [Failed] if something could not be written there,
// and prints why. Where standard output is watched over already, end changes nothing.
func Written(env Env) (watched Env, end func(code int) int) {
	if _, is := env.Stdout.(*term.Sink); is {
		return env, func(code int) int { return code }
	}
	out := term.NewSink(env.Stdout)
	env.Stdout = out
	return env, func(code int) int {
		err := out.Err()
		if err == nil {
			return code
		}
		say(env.Stderr, "%s: the answer is not complete, as standard output could not be written: %v\n", env.Called(), err)
		return max(code, Failed)
	}
}

func do(env Env, commands []Command) int {
	name, args := runCommand, env.Args
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if len(args) > 0 {
		switch {
		case isHelp(args[0]):
			name, args = "help", args[1:]
		case args[0] == "-version" || args[0] == "--version":
			name, args = "version", args[1:]
		}
	}
	if name == "help" {
		return help(env, commands, args)
	}
	i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return unknown(env, commands, name)
	}
	return commands[i].Do(env, args)
}

func unknown(env Env, commands []Command, name string) int {
	names := []string{"help"}
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return misuse(env, "unknown command "+quoted(name)+Meant(config.Nearest(name, names)), "")
}

// Meant asks if a person meant near; it is empty where near is.
func Meant(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// quoted shows an argument, short and on one line.
func quoted(arg string) string {
	const most = 40
	if len(arg) > most {
		arg = arg[:most] + "..."
	}
	return fmt.Sprintf("%+q", arg)
}

func misuse(env Env, complaint, command string) int {
	say(env.Stderr, "%s: %s\nSee %s.\n", env.Called(), complaint, strings.Join(strings.Fields(fmt.Sprintf("%s %s --help", env.Called(), command)), " "))
	return Misuse
}

// Do reads the command's flags and runs it.
func (c Command) Do(env Env, args []string) int {
	if c.Raw {
		return c.Run(env, args)
	}
	flags := c.FlagSet()
	if name := undefined(flags, args); name != "" {
		names := []string{"--help"}
		flags.VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
		return misuse(env, "unknown flag "+quoted(name)+Meant(config.Nearest(name, names)), c.Name)
	}
	var rest []string
	for len(args) > 0 {
		switch err := flags.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			say(env.Stdout, "%s", term.Safe(c.help(env, flags)))
			return Done
		case err != nil:
			return misuse(env, strings.Replace(strings.Replace(err.Error(), " flag -", " flag --", 1), "argument: -", "argument: --", 1), c.Name)
		}
		left := flags.Args()
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" {
			rest, left = append(rest, left...), nil
		} else if len(left) > 0 { // flags may follow an argument
			rest, left = append(rest, left[0]), left[1:]
		}
		args = left
	}
	if c.Args == "" && len(rest) > 0 {
		return misuse(env, "unexpected argument "+quoted(rest[0]), c.Name)
	}
	return c.Run(env, rest)
}

// FlagSet declares the command's flags in a new set.
func (c Command) FlagSet() *flag.FlagSet {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if c.Flags != nil {
		c.Flags(flags)
	}
	return flags
}

// undefined is the first argument that looks like a flag and is none.
func undefined(flags *flag.FlagSet, args []string) string {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		if !strings.HasPrefix(args[i], "-") || args[i] == "-" {
			continue
		}
		name, _, given := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		f := flags.Lookup(name)
		switch {
		case name == "h" || name == "help":
		case f == nil:
			return strings.SplitN(args[i], "=", 2)[0]
		case !given && !isBool(f):
			i++ // its value
		}
	}
	return ""
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// say prints a text and escapes its values. Help and other text of several lines is [term.Safe].
func say(w io.Writer, format string, args ...any) { term.Fprintf(w, format, args...) }

// Version is the command that tells which build this is.
func Version() Command {
	var asJSON bool
	return Command{
		Name: "version", Text: "Print version and build.",
		Flags: func(f *flag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print JSON") },
		Run: func(env Env, _ []string) int {
			if asJSON {
				b := buildinfo.Current()
				printJSON(env.Stdout, struct {
					Program  string `json:"program"`
					Version  string `json:"version"`
					Revision string `json:"revision"`
					Go       string `json:"goversion"`
					Build    string `json:"build"`
				}{string(env.Program), b.Version, b.Revision, b.Go, buildinfo.Line(string(env.Program))})
				return Done
			}
			say(env.Stdout, "%v\n", buildinfo.Line(string(env.Program)))
			return Done
		},
	}
}

// settings loads the settings, or prints all complaints.
func settings(env Env) (config.Settings, []config.Complaint, bool) {
	judges := config.Judges{"DOCKET_DATABASE_URL": db.Complaint}
	maps.Copy(judges, env.Judges)
	s, warnings, err := config.LoadWith(env.Program, env.Environ, judges)
	if err == nil && env.Agree != nil {
		err = env.Agree(s)
	}
	if err != nil {
		say(env.Stderr, "%v\n", err)
		return config.Settings{}, nil, false
	}
	return s, warnings, true
}

// Settings loads the settings of the program and warns of unknown variables. Where settings are wrong it prints all complaints, and ok
// is false: the exit code is [Misuse].
func Settings(env Env) (s config.Settings, ok bool) {
	s, warnings, ok := settings(env)
	if ok {
		warn(env, warnings)
	}
	return s, ok
}

// LookedAt loads the settings as [Settings] for a command that only looks at them. It also says which files it left unread.
func LookedAt(env Env) (ok bool) {
	s, ok := Settings(env)
	if ok && env.Unread != nil {
		warn(env, env.Unread(s))
	}
	return ok
}

// InShard reports whether the process belongs to a shard, or there are none. Otherwise it prints a complaint.
func InShard(env Env, s config.Settings) bool {
	if !s.OfAllShards() {
		return true
	}
	say(env.Stderr, "%v\n", config.Complaint{Variable: "DOCKET_SHARD", Text: "is missing; name one of " + strings.Join(s.Shards().Names(), ", ")})
	return false
}

const archiveVariable = "DOCKET_ARCHIVE_TO"

// whole loads the settings of the consumer, for commands that inspect it. A command of docket also gets the group of the
// desk, the topics that it may retry into, and the place of archives.
func whole(env Env) (config.Settings, []config.Complaint, bool) {
	if env.Program != config.Desk {
		return settings(env)
	}
	var err error
	if env.Environ, err = config.ReadPipes(env.Environ, config.Consumer, config.Desk); err != nil {
		say(env.Stderr, "%v\n", err)
		return config.Settings{}, nil, false
	}
	looked := env
	looked.Program = config.Consumer
	s, warnings, ok := settings(looked)
	s = s.WithDeskGroup(config.Lookup(config.Desk, env.Environ, "DOCKET_DESK_GROUP"))
	desk, _, err := config.LoadWith(config.Desk, env.Environ, nil)
	switch {
	case err == nil:
		s = s.WithArchive(desk)
	case config.Lookup(config.Desk, env.Environ, archiveVariable) != "":
		warnings = append(warnings, config.Complaint{Variable: archiveVariable, Text: "not looked at, as settings of the desk are wrong: " + strings.ReplaceAll(err.Error(), "\n", "; ")})
	}
	s.DeskRetryTopics = strings.FieldsFunc(config.Lookup(config.Desk, env.Environ, "DOCKET_DESK_RETRY_TOPICS"), func(r rune) bool { return r == ',' || r == ' ' })
	return s, warnings, ok
}

// warn prints variables that look like settings and are not, for commands without a log.
func warn(env Env, warnings []config.Complaint) {
	for _, w := range warnings {
		say(env.Stderr, "warning: %v\n", w)
	}
}
