package reader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// Edit is the edit of a dead letter that produced a row. The ledger says so, and nothing that a record carries.
type Edit struct {
	AuditID int64 `json:"audit_id"`
	// DeadLetter, By, At and Why are empty where the ledger of this database has no such line, or cannot be read.
	DeadLetter string     `json:"dead_letter_id,omitempty"`
	By         string     `json:"by,omitempty"`
	At         *time.Time `json:"at,omitempty"`
	Why        string     `json:"why,omitempty"`
	// Approved is the last approval of a second person up to this edit, nil where nobody had to approve any.
	Approved *Approval `json:"approved,omitempty"`
	// Changes lead from what was there before the first edit to the row, where both are one JSON object; else Diff is that of the last
	// edit, line by line. They and the original may be personal data, and are there where payloads are.
	Changes  []Change `json:"changes,omitempty"`
	More     int      `json:"more_changes,omitempty"`
	Diff     string   `json:"diff,omitempty"`
	Original *string  `json:"original,omitempty"`        // where it is UTF-8
	Bytes    []byte   `json:"original_base64,omitempty"` // where it is not
}

// Approval is that of the second person whom a change of evidence needs.
type Approval struct {
	By  string    `json:"by"`
	At  time.Time `json:"at"`
	Why string    `json:"why"` // with the number of the proposal
}

// Editions says which rows an edit produced. A [Store] may be one.
type Editions interface {
	// Edits gives the edits of those of decisions that have one, by their place among decisions. It knows those whose rows are not marked
	// yet. With whole it gives Diff and what was there before the first edit, too.
	Edits(ctx context.Context, decisions []Decision, whole bool) (map[int]Edit, error)
}

// ErrEdits says that it is not known which rows were edited since the table was marked last, and by whom.
var ErrEdits = errors.New("the ledger cannot be read by this login, so edits of the last minutes, and who edited, are not known")

// AddEdits gives decisions their edits; with whole those have what is as personal as a payload. unknown says why they may be
// incomplete: then only the marks of rows are told.
func AddEdits(ctx context.Context, s Store, decisions []Decision, whole bool) (unknown error) {
	for i := range decisions {
		if id := decisions[i].EditedAuditID; id != nil {
			decisions[i].Edit = &Edit{AuditID: *id}
		}
	}
	of, ok := s.(Editions)
	if !ok || len(decisions) == 0 {
		return nil
	}
	found, err := of.Edits(ctx, decisions, whole)
	if err != nil {
		return err
	}
	for i, e := range found {
		if e.At != nil {
			at := e.At.UTC()
			e.At = &at
		}
		e.compare(decisions[i].Raw)
		decisions[i].Edit = &e
	}
	return nil
}

// compare finds what changed. The original is in Bytes.
func (e *Edit) compare(now json.RawMessage) {
	was := e.Bytes
	if was == nil {
		return
	}
	if begin := bytes.TrimSpace(was); now != nil && len(begin) > 0 && begin[0] == '{' {
		if d, err := Diff(was, now, DiffOptions{All: true}); err == nil {
			e.Changes, e.More, e.Diff = d.Changes, d.More, ""
		}
	}
	if utf8.Valid(was) {
		text := string(was)
		e.Original, e.Bytes = &text, nil
	}
}
