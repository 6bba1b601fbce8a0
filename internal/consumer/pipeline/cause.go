package pipeline

import (
	"fmt"

	"docket/internal/errclass"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// refusal returns the cause of a dead letter that the decoder refused.
func refusal(r *decision.Refusal) *envelope.Cause {
	return &envelope.Cause{Kind: envelope.Decode, Code: string(r.Reason), Message: r.Error()}
}

// ofTheMoment returns the cause of a parked item.
func ofTheMoment(v errclass.Classification) *envelope.Cause {
	return &envelope.Cause{Kind: envelope.Transient, Code: codeForHeader(v.Code), Message: words(v)}
}

// ofTheRecord returns the cause of a dead letter that the table refused with err.
func ofTheRecord(v errclass.Classification, err error) *envelope.Cause {
	c := &envelope.Cause{Kind: envelope.Data, Code: codeForHeader(v.Code), Message: words(v)}
	c.Table, c.Column, c.Constraint = place(err)
	return c
}

// exhausted returns the cause of an item that spent its last attempt.
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

// codeForHeader returns the code for the header x-failure-code. Users know only a few codes besides SQLSTATEs.
// Metrics tell more of them apart, so finer codes become one of these few, and the message names the finer one.
func codeForHeader(code string) string {
	switch code {
	case errclass.CodeAmbiguousCommit, errclass.CodeProtocol, errclass.CodeDNS, errclass.CodeTLS, errclass.CodeDescriptors:
		return errclass.CodeNetwork
	case errclass.CodePoolExhausted:
		return errclass.CodeTimeout
	case errclass.CodeConfig, errclass.CodeCanceled, errclass.CodePoolClosed, errclass.CodeConnBusy, errclass.CodeTxClosed,
		errclass.CodeCommitRollback, errclass.CodeTooManyParameters, errclass.CodeEncode, errclass.CodeSwallowed:
		return errclass.CodeInternal
	}
	return code
}
