package verify

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestDecisionsOf_UsesTheDecoder(t *testing.T) {
	t.Parallel()
	good := `{"decision_id":"a","timestamp":"2026-01-01T00:00:00.123456789Z"}`
	for value, want := range map[string][]string{
		good: {""}, "{": {"syntax"}, "": {"empty"}, `[` + good + `, {"decision_id":"b"}]`: {"", "missing_field"}, good + "\n{\n": {"", "syntax"},
		`{"decision_id":"a","timestamp":"2026-01-01T00:00:00Z","x":"0123456789012345678901234567890123456789"}`: {"too_large"},
	} {
		ds := DecisionsOf(&kgo.Record{Topic: source, Offset: 4, Key: []byte("k"), Value: []byte(value)}, 100)
		if len(ds) != len(want) {
			t.Fatalf("%s: %d decisions", value, len(ds))
		}
		for i, d := range ds {
			if d.Code != want[i] || (d.Place != Place{source, 0, 4, i}) || (d.ID == "") != (d.Code != "") {
				t.Errorf("%s: %+v", value, d)
			}
			if len(want) == 1 && d.Value != SumOf([]byte(value)) {
				t.Errorf("%s: the value of a record with one decision is not that of the record", value)
			}
		}
	}
	if ds := DecisionsOf(&kgo.Record{Topic: source}, 100); ds[0].Code != "empty" || ds[0].Value != SumOf(nil) {
		t.Errorf("null reads as %+v", ds[0])
	}
}
