package tree

import (
	"strings"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// TestShow_CollectorHasNoOffset: it never was in Kafka before it was dead, and where-is is sent to where it is now.
func TestShow_CollectorHasNoOffset(t *testing.T) {
	t.Parallel()
	l := letter(1, envelope.Cause{Kind: envelope.Decode, Code: "missing_field", Message: "a field is missing"}, ledger.Resolved)
	l.Origin.Partition, l.Origin.Offset, l.Origin.Index = envelope.NoPlace, envelope.NoPlace, envelope.NoIndex
	l.Found = ledger.Found{Topic: "decision-logs-dlq", Partition: 2, Offset: 900, Stamp: now}
	for _, width := range []int{80, 140} {
		w := &world{book: newBook(l), terminal: person(width)}
		list, show := w.call("dlq", "list", "--state", "resolved"), w.call("dlq", "show", l.ID)
		for name, r := range map[string]result{"list": list, "show": show} {
			if r.code != 0 || strings.Contains(r.out, "/-1") || strings.Contains(r.out, "-1/") || (name == "show" || width == 140) && !strings.Contains(r.out, "collector") {
				t.Errorf("%s at %d: exit %d\n%s%s", name, width, r.code, r.out, r.err)
			}
		}
		if !strings.Contains(show.out, "docket where-is decision-logs-dlq/2/900") {
			t.Errorf("where-is is not sent to the dead-letter topic:\n%s", show.out)
		}
	}
}
