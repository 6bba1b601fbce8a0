package frame

import (
	"errors"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/term"
)

// NumberAfter is the number in the flag --after of a list that is ordered by numbers.
func NumberAfter(cursor string) (int64, error) {
	n, err := ledger.NumberAfter(cursor)
	if err != nil {
		return 0, Misuse("--after must be the next of the page before, not %s", term.Quoted(cursor))
	}
	return n, nil
}

// Numbered asks for a page of a list that is ordered by numbers, and whether there are more. It never asks for more than
// limit at once, as a desk refuses that. A desk that is older than this program has no pages: then whether there are more
// is not known, and no next page is named.
func Numbered[T any](ask func(before int64, n int) ([]T, error), before int64, limit int, number func(T) int64) (page []T, next string, err error) {
	page, err = ask(before, limit)
	if err != nil || len(page) < limit {
		return page, "", err
	}
	more, err := ask(number(page[limit-1]), 1)
	switch {
	case errors.Is(err, ledger.ErrBadPage):
		return page, "", nil
	case err != nil:
		return nil, "", err
	}
	page, next = ledger.NextNumber(append(page, more...), limit, number)
	return page, next, nil
}

// NextPage tells how to list what follows; next is empty where nothing does.
func (c Call) NextPage(n int, next string) {
	if next != "" {
		c.Tell("%s shown; next page: --after %s\n", term.Grouped(int64(n)), next)
	}
}
