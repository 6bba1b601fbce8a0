package frame

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/client"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/contexts"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

// Call is one call of docket, as each of its commands gets it. A copy is the same call.
type Call struct {
	*term.Screen
	Env     cli.Env
	Options Options
	asks    bool // all shards, if the process belongs to none
	local   bool // the database and files of this host, never a desk
	*opened
}

// opened is the part of a call that changes while a command runs. Copies of the call share it.
type opened struct {
	Settings config.Settings
	Sys      *System // nil before [Call.Open]
	Code     int     // the exit code

	target   *contexts.Target
	targeted bool // target is known
}

// New starts a call.
func New(env cli.Env, o Options) Call {
	return Call{
		Screen: &term.Screen{
			Program: string(env.Program), Out: env.Stdout, Err: env.Stderr, In: o.Stdin, Terminal: o.Terminal, Environ: env.Environ, Clock: o.Now, Color: o.Color,
		},
		Env: env, Options: o, opened: &opened{},
	}
}

// Asking returns the call for a command that asks all shards if the process belongs to none. Other commands need a shard,
// as each has a ledger and a table of its own.
func (call Call) Asking() Call {
	call.asks = true
	return call
}

// OnDatabase returns the call for a command that no desk can do: it works on the database and on files of this host.
func (call Call) OnDatabase() Call {
	call.local = true
	return call
}

// MisuseError is wrong use: exit 2.
type MisuseError struct{ text string }

func (e *MisuseError) Error() string { return e.text }

// Misuse makes an error of wrong use.
func Misuse(format string, args ...any) error { return &MisuseError{fmt.Sprintf(format, args...)} }

// Exit is the error of a command that has printed everything. It carries the exit code.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Work is the part of a command that needs the database.
type Work func(ctx context.Context) error

// Run makes the function of a cobra command. check looks at flags and arguments before any setting is read. So wrong use is reported
// even where nothing is set up. It returns the work. The error of the work decides the exit code; wrong use is left to Main.
func (call Call) Run(check func(args []string) (Work, error)) func(*cobra.Command, []string) error {
	return call.Direct(func(args []string) error {
		do, err := check(args)
		if err != nil {
			return err
		}
		if err := call.Open(); err != nil {
			return err
		}
		ctx, end := cli.UntilSignal(call.Env)
		defer end()
		return do(ctx)
	})
}

// Direct is [Call.Run] for a command that opens by itself what it needs.
func (call Call) Direct(do func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		err := do(args)
		var ended Exit
		var wrong *MisuseError
		var another *client.AnotherNameError
		switch {
		case err == nil:
		case errors.As(err, &ended):
			call.Code = int(ended)
		case errors.As(err, &wrong):
			return err
		case errors.As(err, &another):
			return Misuse("%v", another)
		default:
			if call.Code = cli.Failed; errors.Is(err, ledger.ErrAmbiguous) {
				call.Code = cli.Misuse
			}
			call.Failed(err)
		}
		return nil
	}
}

// Failed prints an error, and a hint where there is one.
func (call Call) Failed(err error) {
	if open := (*UnknownError)(nil); errors.Is(err, context.Canceled) && !errors.As(err, &open) {
		return
	}
	call.Tell("%s: %v\n", call.Program, err)
	hint := db.Hint(err)
	var shelf *archive.ShelfError
	var cannot *archive.CannotError
	var uncounted *archive.UncountedError
	var unfollowed *archive.UnfollowedError
	var long *archive.LineError
	var proposal *ledger.ProposalError
	var asked interface{ Hint() string }
	var alone *ledger.SecondPersonError
	var edited *ledger.EditedError
	var ambiguous *ledger.AmbiguousError
	switch {
	case errors.As(err, &proposal):
		hint = proposal.Hint()
	case errors.As(err, &alone):
		hint = "the rule of two editors was switched on meanwhile: start again, and the edit is proposed"
	case errors.As(err, &edited):
		hint = "look at it and start again"
	case errors.As(err, &shelf):
		hint = shelf.Hint()
	case errors.As(err, &cannot):
		hint = cannot.Hint()
	case errors.As(err, &uncounted):
		hint = uncounted.Hint()
	case errors.As(err, &unfollowed):
		hint = unfollowed.Hint()
	case errors.As(err, &long):
		hint = long.Hint()
	case call.Sys != nil && call.Sys.Desk != nil && errors.As(err, &asked):
		hint = asked.Hint()
	case errors.Is(err, ledger.ErrNotFound):
		hint = "`docket dlq list`, `docket dlq proposals` and `docket jobs list` show what is there; resolved dead letters are deleted after a while, their audit log stays"
	case errors.As(err, &ambiguous) && len(ambiguous.IDs) > 0:
		hint = "those that begin like this:\n  " + strings.Join(ambiguous.IDs, "\n  ")
	case errors.Is(err, ledger.ErrAmbiguous):
		hint = "`docket dlq list --wide` prints whole ids"
	}
	if hint != "" && !strings.Contains(err.Error(), hint) {
		call.Tell("%s\n", term.Lines(hint))
	}
}

// Open loads the settings and opens the system, once.
func (call Call) Open() error {
	if call.Sys != nil {
		return nil
	}
	if remote, err := call.openDesk(); remote || err != nil {
		return err
	}
	settings, ok := cli.Settings(call.Env)
	if !ok {
		return Exit(cli.Misuse)
	}
	if !call.asks && !cli.InShard(call.Env, settings) {
		return Exit(cli.Misuse)
	}
	call.Settings = settings
	sys, err := call.Options.Open(call.Env, settings)
	if err != nil {
		return Exit(cli.Unopened(call.Env, err))
	}
	call.Sys = sys
	return nil
}

// Close closes the system where it was opened.
func (call Call) Close() {
	if call.Sys != nil && call.Sys.Close != nil {
		call.Sys.Close()
	}
}

// ExitCode is the exit code of the call.
func (call Call) ExitCode() int {
	if call.Code == cli.Done && call.Broken {
		return cli.Failed
	}
	return call.Code
}

// Setting looks up one setting, before the others are loaded.
func (call Call) Setting(name string) string {
	return config.Lookup(call.Env.Program, call.Env.Environ, name)
}

// Whole finds the whole id by its first characters.
func (call Call) Whole(ctx context.Context, id string) (string, error) {
	if len(id) == wholeID {
		return id, nil
	}
	e, err := call.Entry(ctx, id)
	return e.ID, err
}

// The lengths of ids of dead letters, in characters: the whole id, the part that people see, and the shortest part that is accepted.
const (
	wholeID = 64
	ShortID = 12
	LeastID = 6
)

// LongEnough refuses ids of dead letters that are too short.
func LongEnough(ids ...string) error {
	for _, id := range ids {
		if len(id) < LeastID {
			return Misuse("%s is too short for an id: give at least %d characters", term.Quoted(id), LeastID)
		}
	}
	return nil
}

// Entry finds a dead letter by its id, or by the first characters of it.
func (call Call) Entry(ctx context.Context, id string) (ledger.Entry, error) {
	e, err := call.Sys.Book.Show(ctx, id)
	if err != nil {
		return e, fmt.Errorf("dead letter %s: %w", term.Brief(id), err)
	}
	return e, nil
}

// WithPayload returns a dead letter with its payload. A desk is asked for it, and logs that.
func (call Call) WithPayload(ctx context.Context, e ledger.Entry) (ledger.Entry, error) {
	desk, ok := call.Sys.Book.(interface {
		Payload(ctx context.Context, e ledger.Entry) (ledger.Entry, error)
	})
	if !ok {
		return e, nil
	}
	e, err := desk.Payload(ctx, e)
	if err != nil {
		return e, fmt.Errorf("payload of dead letter %s: %w", term.Brief(e.ID), err)
	}
	return e, nil
}

// ID is an id as it is printed: short on a terminal.
func (call Call) ID(id string) string {
	if call.Terminal.Out && !call.Wide && len(id) > ShortID {
		return id[:ShortID]
	}
	return id
}

// PaintState colours the state of a dead letter, a job or a proposal.
func (call Call) PaintState(text string) term.Safe {
	return call.Paint(map[string]term.Style{
		string(ledger.Pending): term.Yellow, string(ledger.Processing): term.Cyan, string(ledger.Failed): term.Red, string(ledger.Resolved): term.Green,
		string(ledger.JobRunning): term.Cyan, string(ledger.JobWaiting): term.Yellow, string(ledger.JobStopped): term.Red, string(ledger.JobDone): term.Green,
		string(ledger.ProposalOpen): term.Yellow, string(ledger.ProposalApproved): term.Green, string(ledger.ProposalRejected): term.Red,
	}[text], text)
}
