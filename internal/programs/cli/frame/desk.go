package frame

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"docket/internal/desk/client"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/contexts"
	"docket/internal/programs/cli/term"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
)

// Target returns the desk that flags, environment and contexts choose; nil: none, so that the database is asked. The file of a
// token is read once, as a pipe gives it once.
func (call Call) Target() (*contexts.Target, error) {
	if call.targeted {
		return call.target, nil
	}
	t, err := contexts.Of(call.Env.Environ, call.Options.Asks)
	var wrong *contexts.MisuseError
	if errors.As(err, &wrong) {
		return nil, Misuse("%v", wrong)
	}
	call.target, call.targeted = t, err == nil
	return t, err
}

// openDesk opens the system of a desk, if one is chosen. A command that no desk can do refuses one that was chosen by
// name. It ignores the current context.
func (call Call) openDesk() (remote bool, err error) {
	t, err := call.Target()
	if err != nil || t == nil {
		return false, err
	}
	if call.local {
		if t.Context != "" && call.Options.Asks.Context == "" && call.Setting("DOCKET_CONTEXT") == "" {
			return false, nil
		}
		return false, Misuse("a desk cannot do this for you: it needs the database and files of this host. Leave away --server, --context and DOCKET_SERVER, and set DOCKET_DATABASE_URL")
	}
	c, err := call.Connect(t)
	if err != nil {
		return false, err
	}
	quiet := call.Env
	quiet.Stderr = io.Discard
	settings, _, err := config.LoadWithout(config.Desk, quiet.Environ, nil, "DOCKET_DATABASE_URL")
	if err != nil {
		term.Fprintf(call.Env.Stderr, "%v\n", err)
		return false, Exit(cli.Misuse)
	}
	call.Settings, call.Sys = settings, &System{
		Desk: c, Decisions: c.Decisions(), States: c.States(), Complete: c.Complete(call.Clock), Homes: c.Homes, Why: c.Why, Book: c.Book(), Trial: c.Trial(),
		Horizon: c.Horizon, Backlog: c.Backlog, Calendar: c.Calendar, Inventory: c.Inventory, Prove: proving(c), Forget: c.Book().Forget, ForgetLetters: c.Book().ForgetLetters, Close: c.Close,
	}
	return true, nil
}

// proving has a desk read archives. The error says which one it did not read.
func proving(c *client.Client) func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error {
		err := c.Prove(ctx, name)
		if wrong := (*client.ArchiveError)(nil); err == nil || errors.As(err, &wrong) {
			return err
		}
		return fmt.Errorf("archive %s was not read: %w", name, err)
	}
}

// Connect makes the client of a desk. It sends nothing.
func (call Call) Connect(t *contexts.Target) (*client.Client, error) {
	t.Agent = buildinfo.Line(call.Program)
	t.Older = func(server string) {
		call.Tell("%s: the desk at %s is older than this program: its answers may lack parts; upgrade the desk\n", call.Program, server)
	}
	c, err := client.New(t.Config)
	var wrong *client.ConfigError
	switch {
	case errors.As(err, &wrong) && t.Context != "":
		return nil, Misuse("context %s: %v", term.Quoted(t.Context), wrong)
	case errors.As(err, &wrong):
		return nil, Misuse("%v", wrong)
	}
	return c, err
}

// Source names what is asked: the database, or the desk.
func (call Call) Source() string {
	if call.Sys != nil && call.Sys.Desk != nil {
		return "the desk"
	}
	return "the database"
}

// DeskLimit sets the limit of a record to that of the desk. An older desk does not tell it.
func (call Call) DeskLimit(ctx context.Context) error {
	if call.Sys.Desk == nil {
		return nil
	}
	me, err := call.Sys.Desk.Whoami(ctx)
	call.Settings.MaxRecordBytes = cmp.Or(config.Size(me.MaxRecordBytes), call.Settings.MaxRecordBytes)
	return err
}
