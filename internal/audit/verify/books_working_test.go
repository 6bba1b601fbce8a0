package verify

import (
	"testing"

	"docket/internal/desk/ledger"
)

// Normal acts of the ledger break no invariant.
func TestBooks_LateRetries(t *testing.T) {
	t.Parallel()
	late := ledger.Audit{At: noon, LetterID: "a", Act: ledger.LeaseEnded, From: ledger.Processing, To: ledger.Pending, By: "desk"}
	retried := ledger.Audit{At: noon, LetterID: "a", Act: ledger.Retried, From: ledger.Pending, To: ledger.Processing, By: "ada"}
	died := func(at ledger.State) ledger.Audit {
		return ledger.Audit{At: noon, LetterID: "a", Act: ledger.Died, From: at, To: at, By: "desk", Attempts: 1}
	}
	published := ledger.Found{Topic: source, Partition: 1, Offset: 60, Stamp: noon}
	dead := ledger.Sending{LetterID: "a", Mark: "m8", Published: published, Outcome: ledger.SendingDead}
	for _, c := range []struct {
		name     string
		state    ledger.State
		attempts int
		lines    []ledger.Audit
		sendings []ledger.Sending
	}{
		{"it died after its lease ended", ledger.Pending, 1, []ledger.Audit{retried, late, died(ledger.Pending)}, []ledger.Sending{dead}},
		{"it died while a later one is under way", ledger.Processing, 1, []ledger.Audit{retried, late, retried, died(ledger.Processing)},
			[]ledger.Sending{dead, {LetterID: "a", Mark: "m9", Published: published}}},
		{"it died after it was given up", ledger.Failed, 0,
			[]ledger.Audit{retried, {At: noon, LetterID: "a", Act: ledger.Refused, From: ledger.Processing, To: ledger.Failed, By: "desk"}}, []ledger.Sending{dead}},
		{"it died after a person resolved it", ledger.Resolved, 0,
			[]ledger.Audit{retried, late, {At: noon, LetterID: "a", Act: ledger.Closed, From: ledger.Pending, To: ledger.Resolved, By: "ada"}}, []ledger.Sending{dead}},
	} {
		w := perfect()
		e := w.letter("a")
		was := e.State
		e.State, e.Attempts = c.state, c.attempts
		w.ev.Books.Rows[was]--
		w.ev.Books.Rows[c.state]++
		w.ev.Books.Counted[was]--
		w.ev.Books.Counted[c.state]++
		w.ev.Books.Lines = append(w.ev.Books.Lines, c.lines...)
		w.ev.Books.Sendings = append(w.ev.Books.Sendings, c.sendings...)
		if v := w.decide().Of("I16"); v.State != Held {
			t.Errorf("%s: %v", c.name, v)
		}
	}
}

func TestBooks_AttemptsMatchTheAudit(t *testing.T) {
	t.Parallel()
	for name, attempts := range map[string]int{"one too few": 0, "one too many": 2} {
		w := perfect()
		w.letter("b").Attempts = attempts
		if v := w.decide().Of("I16"); v.State != Broken {
			t.Errorf("%s: %v", name, v)
		}
	}
}
