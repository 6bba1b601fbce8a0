package frame

import (
	"context"
	"io"
	"time"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/contexts"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

// Options are what the command line is given beside its Env.
type Options struct {
	Stdin    io.Reader
	Terminal term.Terminal
	Now      func() time.Time // nil: time.Now
	Color    term.Colors      // when colours are used; empty: on a terminal
	// Page shows a long text in a pager, the words of argv. nil: a process on this one's terminal.
	Page func(ctx context.Context, argv []string, text []byte) error
	// Format is the format that -o names; empty: none.
	Format string
	// Asks are the flags that choose a desk.
	Asks contexts.Flags
	// Open opens the system that commands work on. It need not dial before the first question.
	Open func(env cli.Env, s config.Settings) (*System, error)
	// Desk runs the daemon until it is stopped and returns the exit code.
	Desk func(env cli.Env, args []string) int
	// Programs are the other daemons, each with its own command line.
	Programs []Program
	// Demo shows Docket at work.
	Demo cli.Command
	// Edit runs an editor, the words of argv, and returns once it has ended. nil: a process on this one's terminal.
	Edit func(ctx context.Context, argv []string) error
}

// Program is a daemon with a command line of its own, which is a command of docket.
type Program struct {
	Name     string                    // of the command
	Link     string                    // the name by which the program is called as this one alone
	Text     string                    // one sentence, an imperative
	Env      func(env cli.Env) cli.Env // of the program, made from that of the process
	Commands func() []cli.Command      // that it has
}

// Main does what the program's command line says and returns the exit code.
func (p Program) Main(env cli.Env) int { return cli.Main(p.Env(env), p.Commands()) }
