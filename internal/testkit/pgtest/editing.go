package pgtest

import (
	"fmt"
	"testing"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/ledger"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
)

// Editing is a ledger beside a table, to edit letters and store what their retries carry.
type Editing struct {
	*Letters
	Store *store.Store
}

// NewEditing gives an empty ledger and an empty table.
func NewEditing(t testing.TB) *Editing {
	t.Helper()
	d := NewLetters(t)
	return &Editing{d, Open(t, d.URL, 0)}
}

// Unedited is the value of the letters of [Editing.Edited] before they are edited.
const Unedited = `{"decision_id":"1","timestamp":"2026-01-01T00:00:00Z","path":"p/one"}`

// Said is a decision with that id.
func Said(id string) string {
	return fmt.Sprintf(`{"decision_id":"%s","timestamp":"2026-01-01T00:00:00Z","path":"p/%[1]s"}`, id)
}

// Edited enters a letter, gives it another value and publishes the retry at that offset of partition 0, below 0: not yet.
func (e *Editing) Edited(n int64, value string, offset int64) ledger.Sending {
	e.T.Helper()
	l := Letter(n, Unedited)
	e.Entered(l)
	if err := e.Edit(e.T.Context(), l.ID, "", []byte(value), "-1\n+2", soon, ledger.Actor{Name: "bob", Why: "typo"}); err != nil {
		e.T.Fatal(err)
	}
	s := e.Claimed("r", 1)
	if len(s) != 1 || s[0].LetterID != l.ID {
		e.T.Fatalf("claimed %+v", s)
	}
	if offset >= 0 {
		e.Placed("r", ledger.Placed{SendingID: s[0].ID, Offset: offset})
	}
	return s[0]
}

// Ended says that a retry is stored.
func (e *Editing) Ended(s ledger.Sending) {
	e.T.Helper()
	if err := e.Stored(e.T.Context(), []int64{s.ID}, []string{"x"}, ann); err != nil {
		e.T.Fatal(err)
	}
}

// RowsAt stores the decisions of a value as those of the record at a place.
func (e *Editing) RowsAt(value, topic string, offset int64) {
	e.T.Helper()
	parts := partsOf(e.T, value)
	for i := range parts {
		Store(e.T, e.Store, pipeline.Row{Log: &parts[i].Log, Topic: topic, Offset: offset, Index: i})
	}
}

// Mark marks the rows that the decisions of a retry's value produced.
func (e *Editing) Mark(s ledger.Sending, value string) (marked, missing int) {
	e.T.Helper()
	marked, missing, err := e.MarkEdited(e.T.Context(), s.ID, NamesOf(e.T, value))
	if err != nil {
		e.T.Fatal(err)
	}
	return marked, missing
}

// NamesOf are the identities of the decisions of a value.
func NamesOf(t testing.TB, value string) (names []ledger.RowName) {
	t.Helper()
	for _, p := range partsOf(t, value) {
		names = append(names, ledger.RowName{ID: p.Log.ID, Time: p.Log.Time, Came: p.Log.Came()})
	}
	return names
}

func partsOf(t testing.TB, value string) []decision.Part {
	t.Helper()
	r, refused := decision.Decode([]byte(value), 1<<20)
	if refused != nil {
		t.Fatal(refused)
	}
	return r.Parts
}
