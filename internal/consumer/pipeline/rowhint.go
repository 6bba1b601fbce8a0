package pipeline

import (
	"errors"
	"slices"

	"docket/internal/errclass"
)

// rowHint wraps a write error with the item at whose row Postgres stopped. The search starts there. It proves
// nothing.
type rowHint struct {
	error
	at *item
}

func (s *rowHint) Unwrap() error { return s.error }

// withRowHint adds the item at which a write stopped to its error. Only a fault of a record or of the set-up gets a
// hint: a failure of the moment could stop anywhere. A unique key that is taken gets none either, nor a row that another
// one excludes: of the two the earlier has to win, and the server may name either.
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
	if !ok || index < 0 || index >= len(items) || v.Code == "23505" || v.Code == "23P01" ||
		v.Class != errclass.Data && v.Class != errclass.Systemic {
		return err
	}
	return &rowHint{err, items[index]}
}

// hintedRow returns the position of the named item in a part. The write may have had fewer items than the part,
// because items with a home are left out. If a later item has the same identity, there is no hint. The search tries a
// named item after the others, and of these two the earlier must get the row.
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
