package historydb

import (
	"testing"
	"time"
)

// parted makes partitions of spans of days in May 2026, as "1-3 5-6". "-" before or behind a day is without a bound.
func parted(spans ...[2]int) (parts []bounds) {
	parts = append(parts, bounds{fallback: true})
	for _, s := range spans {
		b := bounds{}
		if s[0] > 0 {
			from := may(s[0])
			b.from = &from
		}
		if s[1] > 0 {
			to := may(s[1])
			b.to = &to
		}
		parts = append(parts, b)
	}
	return parts
}

func may(day int) time.Time { return time.Date(2026, 5, day, 0, 0, 0, 0, time.UTC) }

// A gap that no count explains may have had days: they were archived before days were counted, or the counts were emptied.
func TestMissing_CountsAndGaps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts   []bounds
		counted []int
		want    bool
	}{
		"new":                               {parted([2]int{0, 4}, [2]int{4, 5}, [2]int{5, 6}), nil, false},
		"in use":                            {parted([2]int{0, 4}, [2]int{4, 5}, [2]int{5, 6}), []int{2, 4, 5}, false},
		"counted and gone":                  {parted([2]int{0, 4}, [2]int{5, 6}), []int{4, 5}, true},
		"nobody was there":                  {parted([2]int{0, 4}, [2]int{4, 5}, [2]int{20, 21}), []int{4, 20}, false},
		"archived before days were counted": {parted([2]int{0, 4}, [2]int{20, 21}), []int{20}, true},
		"an early time is no sign":          {parted([2]int{0, 4}, [2]int{20, 21}), []int{1, 20}, true},
		"the first table was removed":       {parted([2]int{4, 5}, [2]int{5, 6}), []int{4, 5}, true},
		"the counts were emptied":           {parted([2]int{0, 4}, [2]int{4, 5}, [2]int{20, 21}, [2]int{21, 22}), []int{21}, true},
		"no counts, no gap":                 {parted([2]int{0, 4}, [2]int{4, 5}), nil, false},
		"no counts and a gap":               {parted([2]int{0, 4}, [2]int{5, 6}), nil, true},
		"one table":                         {parted([2]int{0, 0}), []int{3}, false},
	} {
		var counted []time.Time
		for _, day := range c.counted {
			counted = append(counted, may(day))
		}
		if got := missing(c.parts, counted, span{}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A search is told of its own times alone.
func TestMissing_InARange(t *testing.T) {
	t.Parallel()
	parts := parted([2]int{0, 4}, [2]int{10, 11}, [2]int{12, 13})
	for name, c := range map[string]struct {
		from, to int
		counted  []int
		want     bool
	}{
		"all":                         {0, 0, []int{10}, true},
		"before the gap":              {1, 4, []int{10}, false},
		"in the gap":                  {5, 6, []int{10}, true},
		"behind the gap":              {10, 0, []int{10}, false},
		"a counted day":               {11, 12, []int{10, 11}, true},
		"another than the counted":    {12, 13, []int{10, 11}, false},
		"up to the gap, without ends": {0, 4, []int{10}, false},
	} {
		var of span
		if c.from > 0 {
			of.from = may(c.from)
		}
		if c.to > 0 {
			of.to = may(c.to)
		}
		var counted []time.Time
		for _, day := range c.counted {
			counted = append(counted, may(day))
		}
		if got := missing(parts, counted, of); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
