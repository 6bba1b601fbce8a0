package store

import (
	"encoding/binary"
	"slices"
	"testing"

	"docket/internal/errclass"
)

// An answer that is not what was asked for makes nothing Present: it is an error.
func TestKnown_AnswerOfAnotherForm(t *testing.T) {
	t.Parallel()
	of := func(numbers ...int64) []byte {
		a := newArray(oidInt8, len(numbers), 8*len(numbers))
		for _, n := range numbers {
			a.int8(n)
		}
		return a.bytes()
	}
	changed := func(at int, to uint32) []byte {
		b := of(1, -2)
		binary.BigEndian.PutUint32(b[at:], to)
		return b
	}
	withNull := newArray(oidInt8, 2, 8)
	withNull.int8(1)
	withNull.null()
	for name, c := range map[string]struct {
		answer []byte
		want   []int64
		fails  bool
	}{
		"none":                 {nil, nil, false},
		"some":                 {of(1, -2, 1<<40), []int64{1, -2, 1 << 40}, false},
		"two dimensions":       {changed(0, 2), nil, true},
		"another type":         {changed(8, oidInt4), nil, true},
		"one too few":          {changed(12, 1), nil, true},
		"one too many":         {changed(12, 3), nil, true},
		"another size":         {changed(arrayHeader, 4), nil, true},
		"a NULL":               {withNull.bytes(), nil, true},
		"no more than a start": {of(1)[:12], nil, true},
		"cut":                  {of(1, 2)[:arrayHeader+15], nil, true},
	} {
		var got []int64
		err := eachInt8(c.answer, func(n int64) error {
			got = append(got, n)
			return nil
		})
		if (err != nil) != c.fails || err == nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err != nil && errclass.Classify(err).Code != errclass.CodeProtocol {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKnown_InPortions(t *testing.T) {
	t.Parallel()
	rows, at := someRows(30_000, 0)
	for sum := 0; sum < len(at); {
		n := portionOf(at[sum:], func(i int) int { return len(rows[i].Log.ID) + knownSize })
		size := 0
		for _, p := range knownColumns(rows, at[sum:sum+n]) {
			size += len(p)
		}
		if n < 10_000 && sum+n < len(at) || size > maxPortion+1000 {
			t.Fatalf("%d rows of %d bytes in one", n, size)
		}
		sum += n
	}
}
