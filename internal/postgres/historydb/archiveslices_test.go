package historydb

import (
	"testing"
	"time"

	"docket/internal/history/archive"
)

// TestSlices_EachMoment: slices are in order, few, and have each moment of the day once.
func TestSlices_EachMoment(t *testing.T) {
	t.Parallel()
	day, _ := archive.ParseDay("2026-03-04")
	at := func(d time.Duration) *time.Time { t := day.Add(d); return &t }
	const gigabyte = 1 << 30
	for name, c := range map[string]struct {
		rows dayRows
		n    int
	}{
		"empty":           {dayRows{found: true}, 1},
		"empty and large": {dayRows{found: true, bytes: gigabyte}, mostSlices},
		"small":           {dayRows{found: true, bytes: sliceBytes, first: at(0), last: at(time.Hour)}, 1},
		"some":            {dayRows{found: true, bytes: 5*sliceBytes + 1, first: at(time.Hour), last: at(time.Hour + time.Second)}, 5},
		"large":           {dayRows{found: true, bytes: 100 * gigabyte, first: at(0), last: at(24*time.Hour - time.Microsecond)}, mostSlices},
		"one moment":      {dayRows{found: true, bytes: gigabyte, first: at(time.Hour), last: at(time.Hour)}, 2},
		"a microsecond":   {dayRows{found: true, bytes: gigabyte, first: at(0), last: at(time.Microsecond)}, 1},
		"no index, small": {dayRows{bytes: sortedAtOnce, first: at(0), last: at(time.Hour)}, 1},
		"no index, large": {dayRows{bytes: sortedAtOnce + 1, first: at(0), last: at(time.Hour)}, 24},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := c.rows.slices(day, sliceBytes)
			if len(all) != c.n || len(all) > mostSlices {
				t.Errorf("%d slices", len(all))
			}
			from := day.Time
			for _, s := range all {
				if !s.from.Equal(from) || !s.to.After(s.from) || s.to != s.to.Truncate(time.Microsecond) {
					t.Fatalf("%v behind %v", s, from)
				}
				from = s.to
			}
			if !from.Equal(day.Next().Time) {
				t.Errorf("they end at %v", from)
			}
		})
	}
}
