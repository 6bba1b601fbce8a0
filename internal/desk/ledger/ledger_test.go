package ledger

import (
	"testing"

	"go.uber.org/goleak"

	"docket/internal/record/envelope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFingerprint_SameFailure(t *testing.T) {
	t.Parallel()
	c := envelope.Cause{Kind: envelope.Decode, Code: "too_large", Message: `the record has 1048577 bytes, 7 more than "most" allows`}
	base := Fingerprint(c)
	if len(base) != FingerprintLength {
		t.Errorf("it has %d characters", len(base))
	}
	alike := c
	alike.Message = `the record has 20 bytes, 123456 more than "least" allows`
	if Fingerprint(alike) != base {
		t.Errorf("numbers and quoted names make a difference: %q, %q", Normal(c.Message), Normal(alike.Message))
	}
	for name, change := range map[string]func(*envelope.Cause){
		"kind":       func(c *envelope.Cause) { c.Kind = envelope.Data },
		"code":       func(c *envelope.Cause) { c.Code = "syntax" },
		"constraint": func(c *envelope.Cause) { c.Constraint = "k" },
		"column":     func(c *envelope.Cause) { c.Column = "k" },
		"message":    func(c *envelope.Cause) { c.Message = "the record has no bytes" },
	} {
		other := c
		change(&other)
		if Fingerprint(other) == base {
			t.Errorf("another %s makes no difference", name)
		}
	}
}

func TestNormal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "a": "a", "a1b22c": "a#b#c", `x "y 1" z`: `x "" z`, "at `col` 3": "at `` #", `open "quote 5`: `open "`,
	} {
		if got := Normal(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestMoves_EndAtResolved(t *testing.T) {
	t.Parallel()
	for _, m := range Moves() {
		switch {
		case m.From == Resolved && m.To != "" && m != (Move{Resolved, Pending, Reopened}):
			t.Errorf("%+v: what is resolved stays so", m)
		case m.From == "" && m.To != Pending && m != (Move{"", Resolved, Restored}), m.To == "" && m.From != Resolved:
			t.Errorf("%+v", m)
		case m.To == Processing && m.Act != Retried:
			t.Errorf("%+v: only a retry makes it PROCESSING", m)
		}
	}
	// RESOLVED can be reached from every state.
	reach := map[State]bool{Resolved: true}
	for range Moves() {
		for _, m := range Moves() {
			if reach[m.To] && m.From != "" {
				reach[m.From] = true
			}
		}
	}
	for _, s := range States() {
		if !reach[s] {
			t.Errorf("from %s there is no way out", s)
		}
	}
	if Legal(Resolved, Pending, Retried) || !Legal(Failed, Processing, Retried) {
		t.Error("Legal does not go by Moves")
	}
}
