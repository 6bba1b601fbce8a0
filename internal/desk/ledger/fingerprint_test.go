package ledger

import (
	"testing"

	"docket/internal/record/envelope"
)

func TestFingerprint_AnyPartitionAndRecord(t *testing.T) {
	t.Parallel()
	check := envelope.Cause{Kind: envelope.Data, Code: "23514", Table: "decision_logs_p20261121", Constraint: "no_billing", Message: `row 17 of "a" is refused`}
	key := envelope.Cause{Kind: envelope.Data, Code: "23505", Table: "decision_logs_p20261121", Constraint: "decision_logs_p20261121_req_id_key"}
	with := func(c envelope.Cause, change func(*envelope.Cause)) envelope.Cause { change(&c); return c }
	for name, same := range map[string][2]envelope.Cause{
		"another day":           {check, with(check, func(c *envelope.Cause) { c.Table = "decision_logs_p20261122" })},
		"the default partition": {check, with(check, func(c *envelope.Cause) { c.Table = "decision_logs_default" })},
		"another record":        {check, with(check, func(c *envelope.Cause) { c.Message = `row 4711 of "b" is refused` })},
		"a constraint of each partition": {key, with(key, func(c *envelope.Cause) {
			c.Table, c.Constraint = "decision_logs_default", "decision_logs_default_req_id_key"
		})},
	} {
		if a, b := Fingerprint(same[0]), Fingerprint(same[1]); a != b || len(a) != FingerprintLength {
			t.Errorf("%s: %s and %s", name, a, b)
		}
	}
	for name, other := range map[string]envelope.Cause{
		"kind":            with(check, func(c *envelope.Cause) { c.Kind = envelope.Exhausted }),
		"code":            with(check, func(c *envelope.Cause) { c.Code = "23502" }),
		"constraint":      with(check, func(c *envelope.Cause) { c.Constraint = "no_billing2" }),
		"column":          with(check, func(c *envelope.Cause) { c.Column = "path" }),
		"message":         with(check, func(c *envelope.Cause) { c.Message = "column 17 of \"a\" is refused" }),
		"what ends where": with(check, func(c *envelope.Cause) { c.Constraint, c.Column = "no_bill", "ing" }),
	} {
		if Fingerprint(other) == Fingerprint(check) {
			t.Errorf("%s makes no difference", name)
		}
	}
}
