//go:build synctests

package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
)

// editor is the operator who edits dead letters.
const editor = "editor"

// editing is an edit of an operator.
type editing struct {
	At     time.Duration
	Letter int  // of the movable letters, by id
	Bad    bool // the new value is not a decision either
	Two    bool // the new value has two decisions
	Kept   bool // not retried by the edit, but by a later retry
}

// edited is a new value of a letter, and its expected results.
type edited struct {
	at    time.Time
	value []byte
	worth []conservation.Decision
}

// edits draws edits.
func (s *schedule) edits(d dice) {
	for range min(s.Desks, 1) * d.IntN(6) {
		s.Edits = append(s.Edits, editing{At: d.between(time.Second, 14*time.Second), Letter: d.IntN(100), Bad: d.IntN(4) == 0, Two: d.IntN(4) == 0, Kept: d.IntN(3) == 0})
	}
}

// edit gives a letter another value. Its decisions have unique identities, so each should get a row.
func (w *world) edit(e editing) {
	free := w.letters(ledger.Pending, ledger.Failed)
	if len(free) == 0 {
		return
	}
	id, n := free[e.Letter%len(free)], len(w.edited)
	for _, all := range w.edited {
		n += len(all)
	}
	now := edited{at: time.Now()}
	for i := range 1 + b2i(e.Two) {
		now.worth = append(now.worth, decisionOf(fmt.Sprintf("edited-%d-%d", n, i)))
	}
	now.value = now.worth[0].Body
	if e.Two {
		now.value = fmt.Appendf(nil, "[%s,%s]", now.worth[0].Body, now.worth[1].Body)
	}
	if e.Bad {
		now.value = now.value[:len(now.value)-2]
		now.worth = []conservation.Decision{{Body: now.value, Code: "syntax"}}
	}
	lease := w.deskSettings().DeskLease
	if e.Kept {
		lease = 0
	}
	by := ledger.Actor{Name: editor, Why: "the seed says so", Vouched: true}
	err := w.book.Edit(context.Background(), id, "", now.value, "a diff", lease, by)
	if errors.As(err, new(*ledger.SecondPersonError)) {
		err = w.proposed(id, now.value, !e.Kept, by)
	}
	w.history.add("operator edits", "", fmt.Sprintf("%.12s: bad %v, two %v, retried %v: %v", id, e.Bad, e.Two, !e.Kept, err))
	if err == nil {
		w.edited[id] = append(w.edited[id], now)
		w.retriedBy[editor] += b2i(!e.Kept)
	}
}

// proposed lets a second person approve an edit.
func (w *world) proposed(id string, value []byte, retry bool, by ledger.Actor) error {
	ctx, all := context.Background(), w.proof().Letters
	at := slices.IndexFunc(all, func(e ledger.Entry) bool { return e.ID == id })
	p, err := w.book.Propose(ctx, ledger.Draft{LetterID: id, Before: all[at].Value, Value: value, Retry: retry}, ledger.Actor{Name: "author", Why: by.Why, Vouched: true})
	if err != nil {
		return err
	}
	_, err = w.book.Approve(ctx, p.ID, "a diff", w.deskSettings().DeskLease, by)
	return err
}

func decisionOf(id string) conservation.Decision {
	at := time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	return conservation.Decision{ID: id, Time: at, Body: fmt.Appendf(nil, `{"decision_id":%q,"timestamp":%q,"result":true,"input":{"user":%q}}`, id, at.Format(time.RFC3339), inPayloads)}
}

// sentAs returns the edit whose value a retry must have published; nil: the original value.
func (w *world) sentAs(s *ledger.Sending) *edited {
	all := w.edited[s.LetterID]
	for i := range slices.Backward(all) {
		if !all[i].at.After(s.CreatedAt) {
			return &all[i]
		}
	}
	return nil
}

// came returns the original value of a letter: that of its record, or its part of it. The audit keeps it.
func came(l *ledger.Entry, lines []ledger.Audit) []byte {
	for i := range lines {
		if lines[i].LetterID == l.ID && lines[i].Act == ledger.Edited {
			return lines[i].Original
		}
	}
	return l.Value
}

// judgeEdits checks that the ledger has every edit with the value before it, and that letters have their last value.
func (w *world) judgeEdits(proof ledger.Proof) {
	for i := range proof.Letters {
		l := &proof.Letters[i]
		all := w.edited[l.ID]
		lines := slices.DeleteFunc(slices.Clone(proof.Lines), func(a ledger.Audit) bool { return a.LetterID != l.ID || a.Act != ledger.Edited })
		switch {
		case len(lines) != len(all):
			w.found(fmt.Sprintf("I16 ledger: %.12s was edited %d times, its audit has %d", l.ID, len(all), len(lines)))
			continue
		case len(all) > 0 && !bytes.Equal(l.Value, all[len(all)-1].value):
			w.found(fmt.Sprintf("I16 ledger: %.12s has not the value that it got last", l.ID))
		}
		for n := range lines {
			if n > 0 && !bytes.Equal(lines[n].Original, all[n-1].value) {
				w.found(fmt.Sprintf("I16 ledger: the audit of %.12s has not the value before edit %d", l.ID, n+1))
			}
		}
	}
}

// isStored reports whether all decisions of an edited value have rows.
func (e *edited) isStored(ev *evidence) bool {
	for _, d := range e.worth {
		id := verify.Identity{ID: d.ID, Time: d.Time}
		if d.Code != "" || ev.rows[id] == 0 || !verify.SameJSON(ev.bodies[id], d.Body) {
			return false
		}
	}
	return true
}
