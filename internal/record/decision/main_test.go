package decision

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 1 << 20

// good is the smallest decision log, with room for more members.
func good(more ...string) string {
	members := append([]string{`"decision_id":"d1","timestamp":"2026-11-21T02:00:39.8191495Z"`}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

// only decodes a value that must hold one decision.
func only(t *testing.T, value string) Part {
	t.Helper()
	record, refusal := Decode([]byte(value), 1<<30)
	if refusal != nil {
		t.Fatalf("the record was refused: %v", refusal)
	}
	if len(record.Parts) != 1 || !record.Sole {
		t.Fatalf("got %d parts, sole %v; want one", len(record.Parts), record.Sole)
	}
	return record.Parts[0]
}

// reasonOf returns why a value was refused, as a record or as its only decision, or "".
func reasonOf(t *testing.T, value string) Reason {
	t.Helper()
	record, refusal := Decode([]byte(value), 1<<30)
	switch {
	case refusal != nil:
		return refusal.Reason
	case len(record.Parts) != 1:
		t.Fatalf("got %d parts, want one", len(record.Parts))
	case record.Parts[0].Err != nil:
		return record.Parts[0].Err.Reason
	}
	return ""
}
