package worker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// TestRead_ARest: each decision in a shared letter is read as far as possible. A value that is not a rest is an
// ordinary letter.
func TestRead_ARest(t *testing.T) {
	t.Parallel()
	in := NewIntake(IntakeConfig{MaxRecordBytes: 1 << 20, Actor: ledger.Actor{Name: "desk"}}, nil, nil, zerolog.Nop())
	value := "[\n0,{\"decision_id\":\"a\",\"timestamp\":\"yesterday\"},\n{\"decision_id\":\"b\\u0000\",\"timestamp\":\"2026-01-01T00:00:00Z\"}," +
		`{"decision_id":"c","timestamp":"2026-01-01T00:00:00Z","path":"p"}]`
	for name, c := range map[string]struct {
		value   string
		refused int
		want    string
		several bool // it has several decisions without being a rest
	}{
		"array":        {value, 4, "2 a false,4 b\ufffd true,5 c true", false},
		"gzip":         {string(decision.Zip([]byte(value))), 4, "2 a false,4 b\ufffd true,5 c true", false},
		"lines":        {"\n{\"decision_id\":\"torn\"\n\n}", 2, "1 torn false", false},
		"another size": {value, 5, "1 a false,2 b\ufffd true,3 c true", true},
		"no rest":      {`{"decision_id":"a","timestamp":"2026-01-01T00:00:00Z"}`, 1, "", false},
	} {
		e := envelope.Open(&kgo.Record{Topic: "decision-logs", Partition: 1, Offset: 2})
		r := e.Seal(envelope.Cause{Kind: envelope.Decode, Code: "wrong_type"}, envelope.Sealed{Topic: "dlq", Index: envelope.NoIndex, Value: []byte(c.value), Refused: c.refused})
		var d decision.Decoder
		l := in.read(&d, r)
		if got := told(l.Held); got != c.want || (l.Refused > 0) != (c.want != "" && !c.several) || string(l.Value) != c.value {
			t.Errorf("%s: %d decisions, %q, want %q", name, l.Refused, got, c.want)
		}
		if c.want != "" && (l.DecisionID != "" || l.Path != "") {
			t.Errorf("%s: it claims %q of %q", name, l.DecisionID, l.Path)
		}
	}
}

// told writes the decisions of a letter as "place id timed".
func told(held []ledger.Held) string {
	var all []string
	for _, h := range held {
		all = append(all, fmt.Sprintf("%d %s %v", h.Place, h.ID, !h.Time.IsZero()))
	}
	return strings.Join(all, ",")
}
