package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// entered adds a ledger: a is waiting, b was retried twice and is stored, p is being retried, and one was removed.
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

// line returns the n-th line of a letter, from 0.
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

// cutLine removes the n-th line of a letter, from 1.
func (w *world) cutLine(id string, n int) {
	w.ev.Books.Lines = slices.DeleteFunc(w.ev.Books.Lines, func(l ledger.Audit) bool {
		if l.LetterID == id {
			n--
			return n == 0
		}
		return false
	})
}

func TestBooks_CutLedger(t *testing.T) {
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

// Proposals have lines of their own. They move nothing, and name the present state.
func TestBooks_Proposals(t *testing.T) {
	t.Parallel()
	for _, act := range []ledger.Act{ledger.Proposed, ledger.Approved, ledger.Rejected, ledger.Assigned, ledger.Snoozed} {
		for state, want := range map[ledger.State]State{ledger.Pending: Held, ledger.Failed: Broken} {
			w := perfect()
			w.ev.Books.Lines = append(w.ev.Books.Lines, ledger.Audit{At: noon, LetterID: "a", Act: act, From: state, To: state, By: "ada"})
			if v := w.decide().Of("I16"); v.State != want {
				t.Errorf("%s while %s: %v", act, state, v)
			}
		}
	}
}

func TestBooks_DeskKnowsWhatItRead(t *testing.T) {
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

// TestLooked: records in a range are accounted for. All others that the ledger does not know are missing.
func TestLooked(t *testing.T) {
	t.Parallel()
	open := ledger.Surplus{Topic: dlq, Partition: 1, Client: "edge", First: 10, Next: 14, Last: 20, Letters: 5, Entered: 2, State: ledger.SurplusOpen}
	archived, lost, entered := open, open, open
	archived.First, archived.Last, archived.ArchivedFrom, archived.Next, archived.State = 30, 40, 34, 41, ledger.SurplusArchived
	lost.First, lost.Last, lost.Next, lost.State = 50, 60, 61, ledger.SurplusLost
	entered.First, entered.Last, entered.Next, entered.State = 70, 80, 81, ledger.SurplusEntered
	for name, c := range map[string]struct {
		f     Forwarded
		known bool
		left  bool
	}{
		"known":                      {Forwarded{Found: dlq, At: Position{1, 12}, Client: "edge"}, true, false},
		"left":                       {Forwarded{Found: dlq, At: Position{1, 14}, Client: "edge"}, false, true},
		"the last":                   {Forwarded{Found: dlq, At: Position{1, 20}, Client: "edge"}, false, true},
		"passed and not entered":     {Forwarded{Found: dlq, At: Position{1, 13}, Client: "edge"}, false, false},
		"behind it":                  {Forwarded{Found: dlq, At: Position{1, 21}, Client: "edge"}, false, false},
		"of another client":          {Forwarded{Found: dlq, At: Position{1, 15}}, false, false},
		"of nobody knows whom":       {Forwarded{Found: dlq, At: Position{1, 15}, AnyClient: true}, false, true},
		"of another partition":       {Forwarded{Found: dlq, At: Position{0, 15}, Client: "edge"}, false, false},
		"of another topic":           {Forwarded{Found: pdlq, At: Position{1, 15}, Client: "edge"}, false, false},
		"archived":                   {Forwarded{Found: dlq, At: Position{1, 34}, Client: "edge"}, false, true},
		"before the archive's first": {Forwarded{Found: dlq, At: Position{1, 33}, Client: "edge"}, false, false},
		"lost and still there":       {Forwarded{Found: dlq, At: Position{1, 55}, Client: "edge"}, false, false},
		"said to have entered":       {Forwarded{Found: dlq, At: Position{1, 75}, Client: "edge"}, false, false},
	} {
		w := perfect()
		b := w.ev.Books
		b.Ranges = []ledger.Surplus{open, archived, lost, entered}
		asked := b.Asked
		b.Looked(&c.f, c.known)
		if b.Asked != asked+1 || (b.Left == 1) != c.left || (len(b.Missing) == 1) != (!c.left && !c.known) {
			t.Errorf("%s: %d left, %+v missing", name, b.Left, b.Missing)
		}
		switch v := w.decide().Of("I16"); {
		case (v.State == Held) != (c.left || c.known):
			t.Errorf("%s: %v", name, v)
		case c.left && !strings.Contains(v.Note, "1 dead letters are in a dead-letter topic or an archive"):
			t.Errorf("%s: note %q", name, v.Note)
		}
	}
}

// TestForwardedBy_Client: the client of a record counts only if a key proves it.
func TestForwardedBy_Client(t *testing.T) {
	t.Parallel()
	keys, err := envelope.ParseKeys(strings.Repeat("k", envelope.LeastKey))
	if err != nil {
		t.Fatal(err)
	}
	e := envelope.Open(&kgo.Record{Topic: source, Partition: 1, Offset: 2})
	r := e.Seal(envelope.Cause{Kind: envelope.Data, Code: "23514"}, envelope.Sealed{Topic: dlq, Index: envelope.NoIndex, Value: []byte("x")})
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: envelope.UploadedBy, Value: []byte("edge")})
	if f := ForwardedBy(keys, r, home.DeadLetter, dlq); f.Client != "" || !f.AnyClient {
		t.Errorf("unproven: %q, %v", f.Client, f.AnyClient)
	}
	keys.Sign(r)
	if f := ForwardedBy(keys, r, home.DeadLetter, dlq); f.Client != "edge" || f.AnyClient {
		t.Errorf("proven: %q, %v", f.Client, f.AnyClient)
	}
	if f := ForwardedOf(r, home.DeadLetter, dlq); f.Client != "" || !f.AnyClient {
		t.Errorf("without keys: %q, %v", f.Client, f.AnyClient)
	}
}

// TestBooks_CutRanges: only some ranges were looked at. A record in none of these may be in another one.
func TestBooks_CutRanges(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.ev.Books.RangesCut = true
	w.ev.Books.Looked(&Forwarded{Found: dlq, At: Position{1, 4}, Entry: "x"}, false)
	if v := w.decide().Of("I16"); v.State != Undecided || !strings.Contains(v.Note, "ranges") {
		t.Errorf("%v", v)
	}
	w = perfect()
	w.ev.Books.RangesCut = true
	if v := w.decide().Of("I16"); v.State != Held {
		t.Errorf("all letters are known, and %v", v)
	}
}
