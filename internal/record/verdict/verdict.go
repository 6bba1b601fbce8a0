// Package verdict says how a decision ended. The collector routes by it, and the reader searches by it.
//
// The columns of Postgres have the same verdict, which SQL computes.
package verdict

import (
	"bytes"
	"database/sql"

	"docket/internal/record/decision"
)

// Verdict is how a decision ended, from the column allowed and the two fields result and error.
type Verdict string

// All verdicts.
const (
	Allowed   Verdict = "allowed"   // allowed is true
	Denied    Verdict = "denied"    // allowed is false
	Undefined Verdict = "undefined" // no result and no error
	Error     Verdict = "error"     // OPA reports an error, and allowed is NULL
	Other     Verdict = "other"     // a result that means neither allowed nor denied, such as a list or a number
)

// All returns all verdicts in their usual order.
func All() []Verdict { return []Verdict{Allowed, Denied, Undefined, Error, Other} }

// From returns the verdict of a decision with this column, and with or without an error and a result. Null counts as
// absent.
func From(allowed sql.Null[bool], hasError, hasResult bool) Verdict {
	switch {
	case allowed.Valid && allowed.V:
		return Allowed
	case allowed.Valid:
		return Denied
	case hasError:
		return Error
	case !hasResult:
		return Undefined
	}
	return Other
}

// Of returns the verdict of a decision that was decoded. It reads the payload only if allowed is NULL.
func Of(l *decision.Log) Verdict {
	var hasError, hasResult bool
	if !l.Allowed.Valid {
		for in := decision.Into(l.Raw, 0); in.Next(); {
			switch {
			case in.Is("error"):
				hasError = !isNull(l.Raw[in.Value:in.End])
			case in.Is("result"):
				hasResult = !isNull(l.Raw[in.Value:in.End])
			}
		}
	}
	return From(l.Allowed, hasError, hasResult)
}

func isNull(value []byte) bool { return bytes.Equal(value, []byte("null")) }
