package frame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// done is an answer of a desk.
type done bool

func (done) Error() string { return "no answer" }

func (d done) MayBeDone() bool { return bool(d) }

func TestUnchanged_KnownOrNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		lost bool
	}{
		"refused":                  {&ledger.RefusedError{ID: "a", State: ledger.Resolved}, false},
		"not there":                {ledger.ErrNotFound, false},
		"a right":                  {db.Clean("edit", db.NewServerError("42501", "ERROR")), false},
		"dial":                     {db.Clean("edit", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), false},
		"of a desk, unsent":        {done(false), false},
		"reset":                    {db.Clean("edit", &net.OpError{Op: "read", Err: syscall.ECONNRESET}), true},
		"end of the answer":        {db.Clean("edit", io.ErrUnexpectedEOF), true},
		"deadline":                 {db.Clean("edit", context.DeadlineExceeded), true},
		"server stops":             {db.Clean("edit", db.NewServerError("57P01", "FATAL")), true},
		"no standby has it":        {db.Clean("edit", db.ErrUnconfirmed()), true},
		"commit without an answer": {errclass.As(errors.New("x"), errclass.CodeAmbiguousCommit), true},
		"stopped":                  {fmt.Errorf("ask: %w", context.Canceled), true},
		"of a desk":                {fmt.Errorf("retry: %w", done(true)), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Unchanged(c.err)
			if text := err.Error(); !errors.Is(err, c.err) || strings.HasPrefix(text, "nothing was changed: ") == c.lost || strings.HasPrefix(text, "it is not known whether anything was changed; ") != c.lost {
				t.Error(text)
			}
		})
	}
}
