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

// TestRead_FewIDsOfAnArray: some KB of gzip hold a hundred thousand decisions. The letter notes the first of them, and few bytes.
func TestRead_FewIDsOfAnArray(t *testing.T) {
	t.Parallel()
	in := NewIntake(IntakeConfig{MaxRecordBytes: 16 << 20, Actor: ledger.Actor{Name: "desk"}}, nil, nil, zerolog.Nop())
	short, long := `{"decision_id":"a"}`, `{"decision_id":"`+strings.Repeat("b", 2000)+`"}`
	for name, c := range map[string]struct {
		value string
		most  int
	}{
		"torn":        {"[" + strings.Repeat(short+",", 50_000) + "]", 1000},
		"torn, long":  {"[" + strings.Repeat(long+",", 5000) + "]", 32},
		"whole":       {"[" + strings.Repeat(short+",", 50_000) + short + "]", 1000},
		"whole, long": {"[" + strings.Repeat(long+",", 5000) + long + "]", 32},
	} {
		var d decision.Decoder
		value := decision.Zip([]byte(c.value))
		l := in.read(&d, &kgo.Record{Topic: "dlq", Value: value})
		if len(l.Held) != c.most || l.Held[c.most-1].Place != c.most-1 || l.Refused != 0 {
			t.Errorf("%s: %d decisions of a letter of %d bytes, want %d", name, len(l.Held), len(value), c.most)
		}
	}
}

// TestIntake_ManyDecisionsInPortions: each transaction notes a limited number of decisions, so that it ends in its time.
func TestIntake_ManyDecisionsInPortions(t *testing.T) {
	t.Parallel()
	const letters, each = 50, 1000
	s := &shelf{}
	in := NewIntake(IntakeConfig{}, s, nil, zerolog.Nop())
	all := make([]ledger.Letter, letters, letters+1)
	for i := range all {
		all[i] = ledger.Letter{ID: fmt.Sprint(i), Held: make([]ledger.Held, each)}
	}
	all = append(all, ledger.Letter{ID: "a rest", Held: make([]ledger.Held, mostHeld+1)}) // alone, as it cannot be parted
	known, err := in.once(t.Context(), all)
	if err != nil || known != 0 || len(s.letters) != letters+1 || s.asked() != letters*each/mostHeld+2 {
		t.Errorf("%d of %d letters in %d transactions, %d known, %v", len(s.letters), len(all), s.asked(), known, err)
	}
	if known, err = in.once(t.Context(), all); err != nil || known != len(all) {
		t.Errorf("again: %d known, %v", known, err)
	}
}
