package verify

import (
	"slices"
	"testing"

	"docket/internal/home"
	"docket/internal/ledger"
)

// entered gives the world a ledger: a waits, b was retried twice and is stored, p is on its way, one is gone.
func (w *world) entered() {
	line := func(id string, act ledger.Act, from, to ledger.State) ledger.Audit {
		return ledger.Audit{At: noon, LetterID: id, Act: act, From: from, To: to, By: "ada"}
	}
	published := ledger.Found{Topic: source, Partition: 1, Offset: 50, Stamp: noon}
	w.ev.Books = &Books{
		Read: map[string]map[int32]int64{dlq: {0: 100}, pdlq: {0: 100}}, Asked: 5,
		Proof: ledger.Proof{
			Letters: []ledger.Entry{
				{Letter: ledger.Letter{ID: "a"}, State: ledger.Pending},
				{Letter: ledger.Letter{ID: "b"}, State: ledger.Resolved, Attempts: 1},
				{Letter: ledger.Letter{ID: "p"}, State: ledger.Processing},
			},
			Lines: []ledger.Audit{
				line("a", ledger.Entered, "", ledger.Pending),
				line("b", ledger.Entered, "", ledger.Pending), line("b", ledger.Retried, ledger.Pending, ledger.Processing),
				line("b", ledger.Died, ledger.Processing, ledger.Pending), line("b", ledger.Edited, ledger.Pending, ledger.Pending),
				line("b", ledger.Retried, ledger.Pending, ledger.Processing), line("b", ledger.Stored, ledger.Processing, ledger.Resolved),
				line("b", ledger.Changed, ledger.Resolved, ledger.Resolved),
				line("p", ledger.Entered, "", ledger.Pending), line("p", ledger.Retried, ledger.Pending, ledger.Processing),
				line("gone", ledger.Entered, "", ledger.Pending), line("gone", ledger.Closed, ledger.Pending, ledger.Resolved),
				line("gone", ledger.Removed, ledger.Resolved, ""),
			},
			Sendings: []ledger.Sending{
				{LetterID: "p", Mark: "m1", Published: published},
				{LetterID: "b", Mark: "m2", Published: published, Outcome: ledger.SendingDead},
				{LetterID: "b", Mark: "m3", Published: published, Outcome: ledger.SendingStored},
			},
			Rows:    map[ledger.State]int64{ledger.Pending: 1, ledger.Processing: 1, ledger.Resolved: 1},
			Counted: map[ledger.State]int64{ledger.Pending: 1, ledger.Processing: 1, ledger.Resolved: 1, ledger.Failed: 0},
		},
	}
}

func (w *world) letter(id string) *ledger.Entry {
	return &w.ev.Books.Letters[slices.IndexFunc(w.ev.Books.Letters, func(e ledger.Entry) bool { return e.ID == id })]
}

// line is the n-th line of a letter, from 0.
func (w *world) line(id string, n int) *ledger.Audit {
	for i := range w.ev.Books.Lines {
		if w.ev.Books.Lines[i].LetterID == id {
			if n == 0 {
				return &w.ev.Books.Lines[i]
			}
			n--
		}
	}
	panic("there is no such line")
}

// cutLine takes the n-th line of a letter away, from 1.
func (w *world) cutLine(id string, n int) {
	w.ev.Books.Lines = slices.DeleteFunc(w.ev.Books.Lines, func(l ledger.Audit) bool {
		if l.LetterID == id {
			n--
			return n == 0
		}
		return false
	})
}

func TestOfALedgerThatIsCutOnlyWhatIsThereIsDecided(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.ev.Books.Cut = true
	w.cutLine("gone", 1)
	if v := w.decide().Of("I16"); v.State != Held || v.Note == "" {
		t.Errorf("%v", v)
	}
	w.ev.Books = &Books{Why: "there is no ledger"}
	if v := w.decide().Of("I16"); v.State != Undecided || v.Note != "there is no ledger" {
		t.Errorf("%v", v)
	}
}

// Proposals are lines of their own: they move nothing, and say no other state than the one that is there.
func TestBooks_Proposals(t *testing.T) {
	t.Parallel()
	for _, act := range []ledger.Act{ledger.Proposed, ledger.Approved, ledger.Rejected} {
		for state, want := range map[ledger.State]State{ledger.Pending: Held, ledger.Failed: Broken} {
			w := perfect()
			w.ev.Books.Lines = append(w.ev.Books.Lines, ledger.Audit{At: noon, LetterID: "a", Act: act, From: state, To: state, By: "ada"})
			if v := w.decide().Of("I16"); v.State != want {
				t.Errorf("%s while %s: %v", act, state, v)
			}
		}
	}
}

func TestTheDeskHasToKnowWhatItHasRead(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.ev.Books.Read = map[string]map[int32]int64{dlq: {0: 5}}
	for home, want := range map[home.Home]map[int64]bool{
		home.DeadLetter: {4: true, 5: false}, home.Exhausted: {4: false}, home.Parked: {4: false},
	} {
		for offset, entered := range want {
			f := Forwarded{Home: home, Found: dlq, At: Position{0, offset}}
			if home.String() == "exhausted" {
				f.Found = pdlq
			}
			if got := w.ev.Books.Entered(&f); got != entered {
				t.Errorf("%v at %d: %v", home, offset, got)
			}
		}
	}
}
