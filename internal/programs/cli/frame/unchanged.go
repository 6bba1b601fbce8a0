package frame

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/jackc/pgerrcode"

	"docket/internal/errclass"
)

// UnknownError says that a change may have been made or not: its answer was lost.
type UnknownError struct{ err error }

func (e *UnknownError) Error() string {
	return "it is not known whether anything was changed; look before you do it again: " + e.err.Error()
}

// Unwrap returns why it is not known.
func (e *UnknownError) Unwrap() error { return e.err }

// unchangedError says that a change was not made.
type unchangedError struct{ err error }

func (e *unchangedError) Error() string { return "nothing was changed: " + e.err.Error() }

func (e *unchangedError) Unwrap() error { return e.err }

// Unchanged returns the error of a change that failed. Its text says that nothing was changed, if that is known.
func Unchanged(err error) error {
	if Lost(err) {
		return &UnknownError{err}
	}
	return &unchangedError{err}
}

// lostCodes are of errors that can come after COMMIT was sent.
var lostCodes = []string{
	errclass.CodeNetwork, errclass.CodeTimeout, errclass.CodeAmbiguousCommit,
	pgerrcode.TransactionResolutionUnknown, pgerrcode.StatementCompletionUnknown, pgerrcode.AdminShutdown, pgerrcode.CrashShutdown,
}

// Lost reports whether the answer to a change was lost, so that it may have been made.
func Lost(err error) bool {
	var asked interface{ MayBeDone() bool }
	if errors.As(err, &asked) {
		return asked.MayBeDone()
	}
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return false // nothing was sent
	case errors.Is(err, context.Canceled):
		return true
	}
	return slices.Contains(lostCodes, errclass.Classify(err).Code)
}
