package pipeline

import (
	"context"
	"errors"
	"fmt"

	"docket/internal/errclass"
)

// classify says whose fault an error is. If ctx has not ended, a cancellation came from elsewhere and counts as a
// failure of the moment.
func classify(ctx context.Context, err error) errclass.Classification {
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

// place returns the table, column and constraint that Postgres named, read from methods of the error.
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

// words describes a classification in one line, without text of the server.
func words(v errclass.Classification) string {
	if v.Name == "" {
		return v.Code
	}
	return fmt.Sprintf("%s: %s", v.Name, v.Why)
}

// checkViolated returns the name of the CHECK that a row violates, or "" if the error names none.
func checkViolated(err error) string {
	if !dataFault(err) || errclass.Classify(err).Code != "23514" {
		return ""
	}
	_, _, constraint := place(err)
	return constraint
}

// hinting is an error with advice for an operator.
type hinting interface {
	error
	Hint() string
}

// hint returns advice for an operator: that of the error itself, or else the meaning of its code.
func hint(v errclass.Classification, err error) string {
	if knows, ok := errors.AsType[hinting](err); ok {
		if h := knows.Hint(); h != "" {
			return h
		}
	}
	return words(v)
}
