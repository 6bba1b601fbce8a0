package pipeline

import (
	"context"
	"errors"
	"fmt"

	"docket/internal/errclass"
)

// verdictOn is the verdict on an error. A cancellation that is not ours, as our own context goes on, is one more way in
// which the moment failed.
func verdictOn(ctx context.Context, err error) errclass.Verdict {
	v := errclass.Classify(err)
	if v.Class == errclass.Cancelled && ctx.Err() == nil {
		v, _ = errclass.Lookup(errclass.CodeNetwork)
	}
	return v
}

// dataFault reports whether the table refused a record with this error.
func dataFault(err error) bool { return err != nil && errclass.Classify(err).Class == errclass.Data }

// mayBlame reports whether an error can blame a record that fails alone: the table refused it, or it takes too long.
func mayBlame(err error) bool {
	return err != nil && (dataFault(err) || errclass.Classify(err).Rule == errclass.RetryBisect)
}

// place is where Postgres says that it failed, read off the error's behaviour.
func place(err error) (table, column, constraint string) {
	if e, ok := errors.AsType[interface {
		error
		TableName() string
	}](err); ok {
		table = e.TableName()
	}
	if e, ok := errors.AsType[interface {
		error
		ColumnName() string
	}](err); ok {
		column = e.ColumnName()
	}
	if e, ok := errors.AsType[interface {
		error
		ConstraintName() string
	}](err); ok {
		constraint = e.ConstraintName()
	}
	return table, column, constraint
}

// words describes a verdict in one line of our own.
func words(v errclass.Verdict) string {
	if v.Name == "" {
		return v.Code
	}
	return fmt.Sprintf("%s: %s", v.Name, v.Why)
}

// checkViolated is the constraint that an error names as a CHECK which a row violates, empty where it names none.
func checkViolated(err error) string {
	if !dataFault(err) || errclass.Classify(err).Code != "23514" {
		return ""
	}
	_, _, constraint := place(err)
	return constraint
}

// hinting is an error that knows what an operator can do about it.
type hinting interface {
	error
	Hint() string
}

// hint is what an operator reads beside the reason: what the error itself knows to do about it, else what its code says.
func hint(v errclass.Verdict, err error) string {
	if knows, ok := errors.AsType[hinting](err); ok {
		if h := knows.Hint(); h != "" {
			return h
		}
	}
	return words(v)
}
