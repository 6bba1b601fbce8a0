package frame

import (
	"errors"
	"slices"
	"testing"

	"docket/internal/desk/ledger"
)

func TestNumbered(t *testing.T) {
	t.Parallel()
	failed := errors.New("no answer")
	for name, c := range map[string]struct {
		has     int   // numbers from 1 on
		further error // of each question but the first
		want    []int
		next    string
		err     error
	}{
		"few":         {2, failed, []int{2, 1}, "", nil},
		"all":         {3, nil, []int{3, 2, 1}, "", nil},
		"more":        {4, nil, []int{4, 3, 2}, "2", nil},
		"no answer":   {4, failed, nil, "", failed},
		"former desk": {4, errors.Join(ledger.ErrBadPage, failed), []int{4, 3, 2}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := func(before int64, n int) (page []int, err error) {
				from := c.has
				if before > 0 {
					from, err = int(before)-1, c.further
				}
				for i := from; i > 0 && len(page) < n && err == nil; i-- {
					page = append(page, i)
				}
				return page, err
			}
			page, next, err := Numbered(ask, 0, 3, func(n int) int64 { return int64(n) })
			if !slices.Equal(page, c.want) || next != c.next || !errors.Is(err, c.err) {
				t.Errorf("%v, next %q, %v", page, next, err)
			}
		})
	}
}
