package verdict_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"docket/internal/record/decision"
	"docket/internal/record/verdict"
	"docket/sample"
)

func decoded(t *testing.T, text []byte) *decision.Log {
	t.Helper()
	r, refusal := decision.Decode(text, 1<<20)
	if refusal != nil || r.Parts[0].Err != nil {
		t.Fatalf("%s: %v", text, refusal)
	}
	return &r.Parts[0].Log
}

func TestOf_EachVerdict(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]verdict.Verdict{
		`"result":true`: verdict.Allowed,
		`"result":{"allow":false},"error":{"a":1}`: verdict.Denied,
		`"result":{"allow":"no","allowed":true}`:   verdict.Allowed,
		`"error":{"code":"x"}`:                     verdict.Error,
		`"error":"x","result":[1]`:                 verdict.Error,
		`"err\u006fr":7`:                           verdict.Error,
		`"result":null,"error":null`:               verdict.Undefined,
		`"input":{"result":1,"error":1}`:           verdict.Undefined,
		`"result":[]`:                              verdict.Other,
		`"result":{"deny":["x"]},"error": null`:    verdict.Other,
		`"result":"\u0000"`:                        verdict.Other,
	} {
		log := decoded(t, fmt.Appendf(nil, `{"decision_id":"a","timestamp":"2026-01-01T00:00:00Z",%s}`, fields))
		if got := verdict.Of(log); got != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
}

// TestOf_RealDecisionLogs compares with a reading of the whole decision by encoding/json.
func TestOf_RealDecisionLogs(t *testing.T) {
	t.Parallel()
	seen := map[verdict.Verdict]int{}
	for _, line := range sample.DecisionLogs() {
		log := decoded(t, line)
		var whole struct{ Result, Error json.RawMessage }
		if err := json.Unmarshal(line, &whole); err != nil {
			t.Fatal(err)
		}
		there := func(raw json.RawMessage) bool { return raw != nil && !bytes.Equal(raw, []byte("null")) }
		got := verdict.Of(log)
		if want := verdict.From(log.Allowed, there(whole.Error), there(whole.Result)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		seen[got]++
	}
	if len(seen) < 3 {
		t.Errorf("the sample has only %v", seen)
	}
}
