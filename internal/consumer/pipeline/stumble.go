package pipeline

import (
	"errors"
	"slices"

	"docket/internal/errclass"
)

// stumble is the error of a write of which the table told the row that it came to last. It is a hint of where to look
// for who is to blame, and proves nothing.
type stumble struct {
	error
	over *item
}

func (s *stumble) Unwrap() error { return s.error }

// stumbled notes the item that the error of a write of these items names. Only a fault that may be a record's or the
// set-up's names one: what failed for the moment's sake was anywhere by chance. A unique key that is taken names
// nobody, as of two rows with one key the earlier is to win, and which one is named is the server's affair.
func stumbled(err error, items []*item) error {
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
	return &stumble{err, items[index]}
}

// stumbledOver is the place in a part of the item that its error names. The write can have been of fewer than the part:
// those that still wanted a row. An item with a later one of the same identity is not named: others overtake who is, and
// of the two the earlier is to have the row, whatever a hint is worth.
func stumbledOver(err error, part []*item) (index int, ok bool) {
	s, ok := errors.AsType[*stumble](err)
	if !ok {
		return 0, false
	}
	index = slices.Index(part, s.over)
	return index, index >= 0 && !slices.ContainsFunc(part[index+1:], s.over.sameDecision)
}

func (it *item) sameDecision(other *item) bool {
	return it.log.ID == other.log.ID && it.log.Time.Equal(other.log.Time)
}
