package inspect

import (
	"testing"

	"docket/internal/audit/verify"
	"docket/internal/record/envelope"
)

func TestParseQuery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Query{
		"logs/3/120":   {Place: verify.Place{Topic: "logs", Partition: 3, Offset: 120, Index: envelope.NoIndex}},
		"logs/3/120/2": {Place: verify.Place{Topic: "logs", Partition: 3, Offset: 120, Index: 2}},
		"8f-1":         {ID: "8f-1"}, "a/b": {ID: "a/b"}, "a/b/c": {ID: "a/b/c"}, "a/1/x": {ID: "a/1/x"}, "a/1/2/x": {ID: "a/1/2/x"}, "a/-1/2": {ID: "a/-1/2"},
		"a/1/-2": {ID: "a/1/-2"}, "a/1/2/-1": {ID: "a/1/2/-1"}, "a/1/2/3/4": {ID: "a/1/2/3/4"}, "a/99999999999/1": {ID: "a/99999999999/1"},
	} {
		want.Text = text
		if got := ParseQuery(text); got != want {
			t.Errorf("%s reads as %+v", text, got)
		}
	}
}
