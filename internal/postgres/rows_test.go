package postgres

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"docket/internal/decision"
	"docket/internal/pipeline"
)

func TestOrderSortsByIdentityAndFindsDoubles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "rows")
		rows := make([]pipeline.Row, n)
		for i := range rows {
			rows[i].Log = &decision.Log{
				ID:   rapid.SampledFrom([]string{"", "a", "b", "ab", "B"}).Draw(t, "id"),
				Time: time.Unix(rapid.Int64Range(-2, 2).Draw(t, "second"), rapid.Int64Range(0, 2500).Draw(t, "nanosecond")),
			}
		}
		firsts, doubles := order(rows)

		all := slices.Sorted(slices.Values(append(slices.Clone(firsts), doubles...)))
		for i := range n {
			if i >= len(all) || all[i] != i {
				t.Fatalf("not every row once: %v %v", firsts, doubles)
			}
		}
		first := map[identity]int{}
		for k, i := range firsts {
			if k > 0 && identityOf(&rows[firsts[k-1]]).compare(identityOf(&rows[i])) >= 0 {
				t.Fatalf("%d and %d are not in order", firsts[k-1], i)
			}
			first[identityOf(&rows[i])] = i
		}
		for k, i := range doubles {
			if f, ok := first[identityOf(&rows[i])]; !ok || f >= i {
				t.Fatalf("%d is no later double of %d", i, f)
			}
			if k > 0 && identityOf(&rows[doubles[k-1]]).compare(identityOf(&rows[i])) > 0 {
				t.Fatalf("doubles are not in order: %v", doubles)
			}
		}
	})
}

func TestMicrosCutsTowardsThePast(t *testing.T) {
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
