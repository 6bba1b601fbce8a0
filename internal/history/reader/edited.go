package reader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// Edit is the edit of a dead letter that produced a row, according to the ledger and never to a record.
type Edit struct {
	AuditID int64 `json:"audit_id"`
	// DeadLetter, By, At and Why are empty if this database's ledger has no such line, or cannot be read.
	DeadLetter string     `json:"dead_letter_id,omitempty"`
	By         string     `json:"by,omitempty"`
	At         *time.Time `json:"at,omitempty"`
	Why        string     `json:"why,omitempty"`
	// Approved is the last approval up to this edit, nil if none was needed.
	Approved *Approval `json:"approved,omitempty"`
	// Changes lead from the value before the first edit to the row, if both are one JSON object. Otherwise Diff is
	// that of the last edit, by lines. Both, and the original, may be personal data. They are present wherever
	// payloads are.
	Changes  []Change `json:"changes,omitempty"`
	More     int      `json:"more_changes,omitempty"`
	Diff     string   `json:"diff,omitempty"`
	Original *string  `json:"original,omitempty"`        // if it is UTF-8
	Bytes    []byte   `json:"original_base64,omitempty"` // if it is not
}

// Approval is the approval by a second person, which a change of evidence needs.
type Approval struct {
	By  string    `json:"by"`
	At  time.Time `json:"at"`
	Why string    `json:"why"` // with the number of the proposal
}

// Editions says which rows an edit produced. A [Store] may implement it.
type Editions interface {
	// Edits returns the edits of decisions, by their index. It includes rows that are not marked yet. With whole it
	// also returns Diff and the value before the first edit.
	Edits(ctx context.Context, decisions []Decision, whole bool) (map[int]Edit, error)
}

// ErrEdits says that recent edits, and their authors, are not known.
var ErrEdits = errors.New("the ledger cannot be read by this login, so recent edits and their authors are not known")

// AddEdits adds edits to decisions. With whole they have parts that are as personal as payloads. unknown says why
// they may be incomplete: then only the marks of rows are used.
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

// compare computes the changes. The original is in Bytes.
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
