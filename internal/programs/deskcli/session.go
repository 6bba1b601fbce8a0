package deskcli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/programs/cli"
	"docket/internal/service/config"
)

// session is one call of the program.
type session struct {
	env    cli.Env
	o      Options
	asJSON bool
	wide   bool
	code   int
	wrong  error // what --help was asked of that there is not

	settings  config.Settings
	sys       *System
	in        *bufio.Reader
	toldEdits bool   // that they may be incomplete
	flowing   string // the day of what was followed last, where lines have none
}

// misuseError is wrong use: exit 2.
type misuseError struct{ text string }

func (e *misuseError) Error() string { return e.text }

func misuse(format string, args ...any) error { return &misuseError{fmt.Sprintf(format, args...)} }

// endError ends a command that has said everything, with an exit code.
type endError int

func (e endError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// say writes to a person. Where nobody listens any more, there is nobody to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func (s *session) say(format string, args ...any)  { say(s.env.Stdout, format, args...) }
func (s *session) tell(format string, args ...any) { say(s.env.Stderr, format, args...) }

func (s *session) now() time.Time { return s.o.Now().UTC() }

// work is the part of a command that needs the database.
type work func(ctx context.Context) error

// run makes a cobra command's function. check looks at flags and arguments before any setting is read, so that wrong use is told
// as such wherever it is tried; it returns the work. The error of the work decides the exit code; wrong use is left to [Main].
func (s *session) run(check func(args []string) (work, error)) func(*cobra.Command, []string) error {
	return s.direct(func(args []string) error {
		do, err := check(args)
		if err != nil {
			return err
		}
		if err := s.open(); err != nil {
			return err
		}
		ctx, end := cli.UntilSignal(s.env)
		defer end()
		return do(ctx)
	})
}

// direct is run for a command that opens what it needs by itself.
func (s *session) direct(do func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		err := do(args)
		var ended endError
		var wrong *misuseError
		switch {
		case err == nil:
		case errors.As(err, &ended):
			s.code = int(ended)
		case errors.As(err, &wrong):
			return err
		default:
			s.code = cli.Failed
			s.failed(err)
		}
		return nil
	}
}

// failed says why something went wrong, and what to do.
func (s *session) failed(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	s.tell("%s: %v\n", s.env.Program, err)
	hint := db.Hint(err)
	var shelf *archive.ShelfError
	var cannot *archive.CannotError
	var uncounted *archive.UncountedError
	var long *archive.LineError
	var proposal *ledger.ProposalError
	var alone *ledger.SecondPersonError
	switch {
	case errors.As(err, &proposal):
		hint = proposal.Hint()
	case errors.As(err, &alone):
		hint = "the rule of two editors was switched on meanwhile: start again, and the edit is proposed"
	case errors.As(err, &shelf):
		hint = shelf.Hint()
	case errors.As(err, &cannot):
		hint = cannot.Hint()
	case errors.As(err, &uncounted):
		hint = uncounted.Hint()
	case errors.As(err, &long):
		hint = long.Hint()
	case errors.Is(err, ledger.ErrNotFound):
		hint = "`docket dlq list`, `docket dlq proposals` and `docket jobs list` show what is there; resolved dead letters are deleted after a while, their audit log stays"
	case errors.Is(err, ledger.ErrAmbiguous):
		hint = "`docket dlq list --wide` prints whole ids"
	}
	if hint != "" && !strings.Contains(err.Error(), hint) {
		s.tell("%s\n", hint)
	}
}

// open loads the settings and opens the ledger, once.
func (s *session) open() error {
	if s.sys != nil {
		return nil
	}
	settings, ok := cli.Settings(s.env)
	if !ok {
		return endError(cli.Misuse)
	}
	s.settings = settings
	sys, err := s.o.Open(s.env, settings)
	if err != nil {
		return endError(cli.Unopened(s.env, err))
	}
	s.sys = sys
	return nil
}

func (s *session) close() {
	if s.sys != nil && s.sys.Close != nil {
		s.sys.Close()
	}
}

// width is how wide a line may be; 0: as wide as it gets.
func (s *session) width() int {
	if !s.o.Terminal.Out {
		return 0
	}
	return s.terminalWidth()
}

// terminalWidth is how many columns the terminal has.
func (s *session) terminalWidth() int {
	if s.o.Terminal.Width > 0 {
		return s.o.Terminal.Width
	}
	if n, err := strconv.Atoi(environment(s.env.Environ)["COLUMNS"]); err == nil && n > 0 {
		return n
	}
	return defaultWidth
}

const defaultWidth = 80

// whole finds the whole id for the first characters of one.
func (s *session) whole(ctx context.Context, id string) (string, error) {
	if len(id) == wholeID {
		return id, nil
	}
	e, err := s.entry(ctx, id)
	return e.ID, err
}

// wholeID is how many characters an id has, shortID how many are enough for people.
const (
	wholeID = 64
	shortID = 12
	leastID = 6
)

// longEnough refuses what is too short for an id of a dead letter.
func longEnough(ids ...string) error {
	for _, id := range ids {
		if len(id) < leastID {
			return misuse("%s is too short for an id: give at least %d characters", quoted(id), leastID)
		}
	}
	return nil
}

func (s *session) entry(ctx context.Context, id string) (ledger.Entry, error) {
	e, err := s.sys.Book.Show(ctx, id)
	if err != nil {
		return e, fmt.Errorf("dead letter %s: %w", plain(id), err)
	}
	return e, nil
}

// id is an id as it is shown: short on a terminal.
func (s *session) id(id string) string {
	if s.o.Terminal.Out && !s.wide && len(id) > shortID {
		return id[:shortID]
	}
	return id
}

// operator is who decides: told by a flag or by the settings.
func (s *session) operator(flag string) (string, error) {
	name := strings.TrimSpace(flag)
	if name == "" {
		name = strings.TrimSpace(config.Lookup(s.env.Program, s.env.Environ, "DOCKET_OPERATOR"))
	}
	if name == "" {
		return "", misuse("no operator: give --operator NAME, or set DOCKET_OPERATOR; the name goes into the audit log")
	}
	return oneLine("--operator", name, 100)
}

// oneLine keeps what a person says of a decision fit for the audit.
func oneLine(flag, text string, most int) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case len(text) > most:
		return "", misuse("%s has %d bytes; at most %d are allowed", flag, len(text), most)
	case text != plainAll(text):
		return "", misuse("%s must be one line of printable text", flag)
	}
	return text, nil
}

const maxReason = 1000

// operatorText explains --operator.
const operatorText = "your `NAME` for the audit log (required, unless DOCKET_OPERATOR is set)"
