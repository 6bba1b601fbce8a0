package store

import (
	"testing"
	"time"
)

func TestMicros_CutsTowardsThePast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   time.Time
		want int64
	}{
		{time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), 0},
		{time.Date(2000, 1, 1, 0, 0, 0, 1999, time.UTC), 1},
		{time.Date(1999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), -1},
		{time.Date(1999, 12, 31, 23, 59, 59, 999_998_999, time.UTC), -2},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), -63_113_904_000_000_000},
	} {
		if got := micros(c.at); got != c.want {
			t.Errorf("%v: %d, want %d", c.at, got, c.want)
		}
	}
}
