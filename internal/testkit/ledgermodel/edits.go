package ledgermodel

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"docket/internal/desk/ledger"
)

// editOf returns the last edit that the value of a letter comes from: its own, or its parent's before it entered.
func (b *Book) editOf(letter string) int64 {
	before := int64(math.MaxInt64)
	for letter != "" {
		entered := int64(0)
		for _, l := range slices.Backward(b.lines) {
			if l.LetterID == letter && l.ID < before && l.Act == ledger.Edited {
				return l.ID
			}
		}
		for _, l := range b.lines {
			if l.LetterID == letter && l.Act == ledger.Entered && entered == 0 {
				entered = l.ID
			}
		}
		e := b.letters[letter]
		if e == nil || entered == 0 {
			return 0
		}
		letter, before = e.Parent, entered
	}
	return 0
}

// unmarked reports whether the rows of a stored retry still lack the mark of its edit.
func (s *sending) unmarked() bool {
	return s.edit != 0 && !s.marked && s.Outcome == ledger.SendingStored
}

// Unmarked implements [ledger.Marker].
func (b *Book) Unmarked(ctx context.Context, n int) (due []ledger.Unmarked, all int64, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer end()
	var found []*sending
	for _, s := range b.all() {
		if s.unmarked() {
			all++
			if !s.markAt.After(now) && b.letters[s.LetterID] != nil {
				found = append(found, s)
			}
		}
	}
	slices.SortFunc(found, func(a, b *sending) int { return cmp.Or(a.markAt.Compare(b.markAt), cmp.Compare(a.ID, b.ID)) })
	for _, s := range found[:min(n, len(found))] {
		due = append(due, ledger.Unmarked{ID: s.ID, LetterID: s.LetterID, AuditID: s.edit, Value: s.Value, Children: slices.Clone(s.children), Tries: s.marks})
	}
	return due, all, nil
}

// MarkEdited implements [ledger.Marker]. The model has no rows: it asks [Book.Rows].
func (b *Book) MarkEdited(ctx context.Context, id int64, rows []ledger.RowName) (marked, missing int, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer end()
	s := b.sendings[id]
	if s == nil || !s.unmarked() {
		return 0, 0, nil
	}
	missing = len(rows)
	if b.Rows != nil {
		marked, missing = b.Rows(s.Sending, s.edit, rows)
	}
	s.markAt = now.Add(min(24*time.Hour, time.Second<<min(s.marks, 17)))
	s.marks++
	s.marked = missing == 0
	return marked, missing, nil
}
