package pipeline

import (
	"errors"
	"slices"

	"docket/internal/errclass"
)

// rowHint wraps a write error with the item at whose row Postgres stopped. The search starts there. It proves nothing.
type rowHint struct {
	error
	at *item
}

func (s *rowHint) Unwrap() error { return s.error }

// withRowHint notes the item that the error of a write of these items names. Only a fault that may be a record's or the
// set-up's names one: what failed for the moment's sake was anywhere by chance. A unique key that is taken names
// nobody, as of two rows with one key the earlier is to win, and which one is named is the server's affair.
func withRowHint(err error, items []*item) error {
	e, ok := errors.AsType[interface {
		error
		Row() (index int, ok bool)
	}](err)
	if !ok {
		return err
	}
	v := errclass.Classify(err)
	index, ok := e.Row()
	if !ok || index < 0 || index >= len(items) || v.Code == "23505" ||
		v.Class != errclass.Data && v.Class != errclass.Systemic {
		return err
	}
	return &rowHint{err, items[index]}
}

// hintedRow returns the place in a part of the item that its error names. The write may have had fewer items than the
// part: those without a home. An item with a later one of the same identity is not named, because others overtake a
// named item, and of these two the earlier has to get the row.
func hintedRow(err error, part []*item) (index int, ok bool) {
	s, ok := errors.AsType[*rowHint](err)
	if !ok {
		return 0, false
	}
	index = slices.Index(part, s.at)
	return index, index >= 0 && !slices.ContainsFunc(part[index+1:], s.at.sameDecision)
}

func (it *item) sameDecision(other *item) bool {
	return it.log.ID == other.log.ID && it.log.Time.Equal(other.log.Time)
}
