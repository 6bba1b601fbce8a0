//go:build integration

package ledgerdb_test

import (
	"fmt"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
)

const (
	one   = pgtest.Unedited
	two   = `{"decision_id":"2","timestamp":"2026-01-01T00:00:00Z","path":"p/two"}`
	three = `{"decision_id":"3","timestamp":"2026-01-01T00:00:00Z","path":"p/three"}`
)

// part is the dead letter of one decision of the retried record.
func part(s ledger.Sending, offset int64, index int, value string) ledger.Letter {
	l := home(s, offset)
	l.Value, l.Origin.Index = []byte(value), index
	l.ID = envelope.ID(l.Origin, l.Value)
	return l
}

func TestReentry_DecisionOfARecord(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	whole := letter(1, one+"\n"+two+"\n"+three+"\n")
	d.Entered(whole)
	s := d.Put(whole.ID, 500)
	b, c := part(s, 500, 1, two), part(s, 500, 2, three)
	c.RetryOf = "" // the place says enough
	for range 2 {
		d.Entered(b, c)
	}
	same(t, d.State(whole.ID), "PROCESSING 0 retried")
	same(t, d.State(b.ID), "PENDING 0 entered")
	same(t, d.Text(`SELECT string_agg(parent_id, ' ') FROM dead_letters WHERE parent_id IS NOT NULL`), whole.ID+" "+whole.ID)
	same(t, d.Text(`SELECT children::text FROM dead_letter_outbox`), "{1,2}")
	same(t, d.Text(`SELECT coalesce(outcome, 'open') FROM dead_letter_outbox`), "open")
	d.Sums()
}

// A writer to the source topic can put anything there, also marks that it read there, and have it end dead.
func TestReentry_ForgedRetry(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(s ledger.Sending) ledger.Letter{
		"another value under a mark": func(s ledger.Sending) ledger.Letter {
			l := letter(900, `{"forged":1}`)
			l.RetryOf = s.Mark
			return l
		},
		"another value at the place": func(s ledger.Sending) ledger.Letter {
			return letter(500, `{"forged":1}`)
		},
		"no value under a mark": func(s ledger.Sending) ledger.Letter {
			l := letter(900, "")
			l.Value, l.RetryOf = nil, s.Mark
			return l
		},
		"an empty value under a mark": func(s ledger.Sending) ledger.Letter {
			l := letter(900, "")
			l.RetryOf = s.Mark
			return l
		},
		"one that says it is a part": func(s ledger.Sending) ledger.Letter { return part(s, 900, 1, three) },
		"a part that is not there":   func(s ledger.Sending) ledger.Letter { return part(s, 900, 7, one) },
		"a record, undecoded, of one part": func(s ledger.Sending) ledger.Letter {
			return part(s, 900, envelope.NoIndex, one)
		},
		"the value under a mark that was never given out": func(s ledger.Sending) ledger.Letter {
			l := home(s, 900)
			l.RetryOf = "00000000-0000-4000-8000-000000000000"
			return l
		},
		"the value under no mark": func(s ledger.Sending) ledger.Letter {
			l := home(s, 900)
			l.RetryOf = "'; DROP TABLE dead_letters; --"
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newLedger(t)
			whole := letter(1, one+"\n"+two)
			d.Entered(whole)
			s := d.Put(whole.ID, 500)
			forged := forge(s)
			if n := d.Entered(forged); n.New != 1 || n.DeadAgain != 0 {
				t.Fatalf("%+v", n)
			}
			same(t, d.State(whole.ID), "PROCESSING 0 retried")
			same(t, d.State(forged.ID), "PENDING 0 entered")
			same(t, d.Text(`SELECT children::text || coalesce(outcome, 'open') FROM dead_letter_outbox`), "{}open")
			same(t, d.Text(`SELECT coalesce(max(parent_id), 'none') FROM dead_letters`), "none")
			if n := d.Entered(home(s, 500)); n.DeadAgain != 1 {
				t.Fatalf("the true one: %+v", n)
			}
			same(t, d.State(whole.ID), "PENDING 1 died")
		})
	}
}

func TestReentry_CopiedRetryCountsOnce(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	s := d.Put(l.ID, 500)
	var copies []ledger.Letter
	for i := range int64(20) {
		copies = append(copies, home(s, 900+i))
	}
	if n := d.Entered(copies...); n.DeadAgain != 1 || n.Known != 19 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(l.ID), "PENDING 1 died")
}

func TestReentry_MarkOfAnotherLetter(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	a, b := letter(1, one), letter(2, two)
	d.Entered(a, b)
	ofA, ofB := d.Put(a.ID, 500), d.Put(b.ID, 501)
	crossed := home(ofB, 501)
	crossed.RetryOf = ofA.Mark // B died, under the mark of A: its place still tells
	if n := d.Entered(crossed); n.DeadAgain != 1 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(a.ID), "PROCESSING 0 retried")
	same(t, d.State(b.ID), "PENDING 1 died")
}

func TestReentry_NoValueAndAnEmptyOne(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	none := letter(1, "")
	none.Value = nil
	d.Entered(none)
	s := d.Put(none.ID, 500)
	empty := home(s, 500)
	empty.Value, empty.ID = []byte{}, fmt.Sprintf("%064x", 7)
	if n := d.Entered(empty); n.New != 1 {
		t.Fatalf("%+v", n)
	}
	if n := d.Entered(home(s, 500)); n.DeadAgain != 1 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(none.ID), "PENDING 1 died")
}

func TestReentry_KnownByTheSentValue(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one+"\n"+two)
	d.Entered(l)
	s := d.Put(l.ID, 500)
	d.lapse()
	if err := d.Edit(t.Context(), l.ID, "", []byte(three), "-1\n+3", 0, ann); err != nil {
		t.Fatal(err)
	}
	child := part(s, 500, 1, two)
	if d.Entered(child); d.Text(`SELECT children::text FROM dead_letter_outbox`) != "{1}" {
		t.Error("a part of what was sent is not known for it")
	}
	d.Exec(t, `UPDATE dead_letter_outbox SET look_at = now()`)
	waits, err := d.Awaited(t.Context(), 1)
	if err != nil || len(waits) != 1 || string(waits[0].Value) != one+"\n"+two || waits[0].State != ledger.Pending {
		t.Fatalf("%+v, %v", waits, err)
	}
	if n := d.Entered(home(s, 500)); n.DeadAgain != 1 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(l.ID), "PENDING 1 died")
	same(t, d.trail(l.ID), "entered >PENDING, retried PENDING>PROCESSING, lease_ended PROCESSING>PENDING, edited PENDING>PENDING, died PENDING>PENDING")
}

func TestReentry_LetterBeforeTheRetry(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one)
	d.Entered(l)
	d.Retried(l.ID)
	s := d.Claimed("r", 1)[0]
	dead := home(s, 500)
	dead.RetryOf = "" // the broker took it with the necessary headers alone
	dead.Cause.Message = "too large"
	if n := d.Entered(dead); n.New != 1 {
		t.Fatalf("%+v", n)
	}
	possible := []ledger.Possible{{SendingID: s.ID, LetterID: "of no letter", Index: envelope.NoIndex}, {SendingID: s.ID, LetterID: l.ID, Index: envelope.NoIndex}, {SendingID: s.ID, LetterID: dead.ID, Index: envelope.NoIndex}}
	overtaken := func(want int) {
		t.Helper()
		if n, err := d.Overtaken(t.Context(), possible, 3, ann); err != nil || n != want {
			t.Fatalf("%d, %v; want %d", n, err, want)
		}
	}
	overtaken(0) // it is not known to be in the topic
	d.Placed("r", ledger.Placed{SendingID: s.ID, Offset: 500})
	if n := d.Entered(dead); n.Known != 1 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(l.ID), "PROCESSING 0 retried")
	overtaken(1)
	overtaken(0)
	same(t, d.State(l.ID), "PENDING 1 died")
	same(t, d.State(dead.ID), "PENDING 0 entered")
	same(t, d.Text(`SELECT outcome FROM dead_letter_outbox`), "dead")
	same(t, d.Text(`SELECT message || ' ' || found_offset FROM dead_letters WHERE dead_letter_id = '`+l.ID+`'`), fmt.Sprint("too large ", dead.Found.Offset))
	if n := d.Entered(home(s, 500)); n.Known != 1 {
		t.Fatalf("%+v", n)
	}
}

func TestReentry_PartBeforeTheRetry(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, one+"\n"+two)
	d.Entered(l)
	d.Retried(l.ID)
	s := d.Claimed("r", 1)[0]
	child := part(s, 500, 1, two)
	child.RetryOf = ""
	d.Entered(child)
	d.Placed("r", ledger.Placed{SendingID: s.ID, Offset: 500})
	if n, err := d.Overtaken(t.Context(), []ledger.Possible{{SendingID: s.ID, LetterID: child.ID, Index: 1}}, 3, ann); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	same(t, d.State(l.ID), "PROCESSING 0 retried")
	same(t, d.Text(`SELECT children::text FROM dead_letter_outbox`), "{1}")
}
