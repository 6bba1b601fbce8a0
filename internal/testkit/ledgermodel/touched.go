package ledgermodel

import (
	"bytes"
	"encoding/json"

	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
)

// touched returns the members of [ledger.Evidence] that differ between the decisions of two values: all of them if a
// value is unreadable.
func touched(before, after []byte) []string {
	if sameValue(before, after) {
		return nil
	}
	was, now := decisions(before), decisions(after)
	if len(was) == 0 || len(was) != len(now) {
		return ledger.Evidence()
	}
	var all []string
	for _, member := range ledger.Evidence() {
		for i := range was {
			old, had := was[i][member]
			is, has := now[i][member]
			if had != has || had && !verify.SameJSON(old, is) {
				all = append(all, member)
				break
			}
		}
	}
	return all
}

// decisions returns the objects of a value: one, those of an array, or one a line. None means that it is unreadable,
// or that one has a repeated name.
func decisions(value []byte) (all []map[string]json.RawMessage) {
	var parts []json.RawMessage
	switch {
	case !json.Valid(value):
		for line := range bytes.SplitSeq(value, []byte("\n")) {
			if line = bytes.Trim(line, " \t\r"); len(line) > 0 {
				parts = append(parts, line)
			}
		}
	case json.Unmarshal(value, &parts) != nil:
		parts = []json.RawMessage{value}
	}
	for _, part := range parts {
		var one map[string]json.RawMessage
		if !decision.Holds(part) || json.Unmarshal(part, &one) != nil || one == nil || names(part) != len(one) {
			return nil
		}
		all = append(all, one)
	}
	return all
}

// names returns the number of members of an object.
func names(object []byte) (n int) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return 0
	}
	for d.More() {
		var value json.RawMessage
		if _, err := d.Token(); err != nil || d.Decode(&value) != nil {
			return -1
		}
		n++
	}
	return n
}
