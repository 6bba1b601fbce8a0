package pipeline

import (
	"fmt"

	"docket/internal/errclass"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// refusal is why the decoder refused a decision or a record.
func refusal(r *decision.Refusal) *envelope.Cause {
	return &envelope.Cause{Kind: envelope.Decode, Code: string(r.Reason), Message: r.Error()}
}

// ofTheMoment is why an item is parked.
func ofTheMoment(v errclass.Verdict) *envelope.Cause {
	return &envelope.Cause{Kind: envelope.Transient, Code: codeForHeader(v.Code), Message: words(v)}
}

// ofTheRecord is why an item is dead-lettered that the table refused with err.
func ofTheRecord(v errclass.Verdict, err error) *envelope.Cause {
	c := &envelope.Cause{Kind: envelope.Data, Code: codeForHeader(v.Code), Message: words(v)}
	c.Table, c.Column, c.Constraint = place(err)
	return c
}

// exhausted is why an item is given up after so many attempts.
func exhausted(code string, attempts int) *envelope.Cause {
	if code == "" {
		code = "internal"
	}
	name := code
	if v, ok := errclass.Lookup(code); ok && v.Name != "" {
		name = v.Name
	}
	return &envelope.Cause{
		Kind: envelope.Exhausted, Code: code,
		Message: fmt.Sprintf("%s (%s): gave up after %d attempts", name, code, attempts),
	}
}

// codeForHeader is a code as x-failure-code has it. Of the failures without a SQLSTATE users know a few by name; the others,
// which metrics tell apart, are among these, and the message says which one it was.
func codeForHeader(code string) string {
	switch code {
	case errclass.CodeAmbiguousCommit, errclass.CodeProtocol, errclass.CodeDNS, errclass.CodeTLS:
		return errclass.CodeNetwork
	case errclass.CodePoolExhausted:
		return errclass.CodeTimeout
	case errclass.CodeConfig, errclass.CodeCanceled, errclass.CodePoolClosed, errclass.CodeConnBusy, errclass.CodeTxClosed,
		errclass.CodeCommitRollback, errclass.CodeTooManyParameters, errclass.CodeEncode, errclass.CodeSwallowed:
		return errclass.CodeInternal
	}
	return code
}
