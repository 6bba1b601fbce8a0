package local

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"docket/internal/consumer/limit"
)

type grant struct {
	at  time.Time
	n   int
	low bool
}

// most returns the most rows within any second; with low only those of the low lanes.
func most(grants []grant, low bool) (n int) {
	for i, first := range grants {
		sum := 0
		for _, g := range grants[i:] {
			if g.at.Sub(first.at) > time.Second {
				break
			}
			if !low || g.low {
				sum += g.n
			}
		}
		n = max(n, sum)
	}
	return n
}

// Partitions move, processes end and begin; in no second does their sum pass the limits and the burst.
func TestLimit_SumHoldsWhilePartitionsMove(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			plan := limit.NewPlan(rapid.IntRange(50, 2000).Draw(r, "all"), 0, 0, nil)
			partitions := rapid.IntRange(1, 12).Draw(r, "partitions")
			const processes = 4
			owner := make([]int, partitions) // -1: it is on its way
			limits := make([]*Limit, processes)
			begin := func(i int) {
				limits[i] = New(func(now time.Time) limit.Rates {
					mine := 0
					for _, of := range owner {
						if of == i {
							mine++
						}
					}
					return plan.Consumer(now, limit.Share{Mine: mine, All: partitions})
				})
			}
			for i := range limits {
				begin(i)
			}
			replayer := New(func(now time.Time) limit.Rates { return plan.Tenth(now, limit.Share{Mine: 1, All: 1}) })
			var grants []grant
			for range rapid.IntRange(1, 400).Draw(r, "steps") {
				time.Sleep(time.Duration(rapid.IntRange(0, 30).Draw(r, "ms")) * time.Millisecond)
				i := rapid.IntRange(0, processes-1).Draw(r, "process")
				switch rapid.IntRange(0, 9).Draw(r, "act") {
				case 0:
					owner[rapid.IntRange(0, partitions-1).Draw(r, "partition")] = rapid.IntRange(-1, processes-1).Draw(r, "owner")
				case 1:
					begin(i)
				case 2:
					n, _, _ := replayer.Ask(t.Context(), true, 1000, 1)
					grants = append(grants, grant{time.Now(), n, true})
				default:
					low := rapid.Bool().Draw(r, "low")
					n, _, _ := limits[i].Ask(t.Context(), low, 1000, 1)
					grants = append(grants, grant{time.Now(), n, low})
				}
			}
			// Each process has at least a burst of one row.
			if n := most(grants, false); n > plan.All+plan.Burst+processes+1 {
				r.Fatalf("%d rows in a second, limit %d, burst %d", n, plan.All, plan.Burst)
			}
			if n := most(grants, true); n > plan.Low+plan.Burst+processes+1 {
				r.Fatalf("%d rows of low lanes in a second, limit %d, burst %d", n, plan.Low, plan.Burst)
			}
		})
	})
}

func TestLimit_FollowsItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		share := limit.Share{}
		plan := limit.NewPlan(450, 350, 0, nil)
		l := New(func(now time.Time) limit.Rates { return plan.Consumer(now, share) })
		time.Sleep(time.Hour)
		if n, wait, _ := l.Ask(t.Context(), false, 10, 1); n != 0 || wait != time.Second {
			t.Errorf("granted %d without a partition, wait %v", n, wait)
		}
		share = limit.Share{Mine: 1, All: 2}
		if n, wait, _ := l.Ask(t.Context(), true, 10, 1); n != 0 || wait > 10*time.Millisecond {
			t.Errorf("a new share brought %d rows, wait %v", n, wait)
		}
		if r := l.Rates(); r.All != 190 || r.Low != 140 || r.Burst != 18 {
			t.Errorf("rates %+v", r)
		}
		var sum int
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			n, wait, _ := l.Ask(t.Context(), true, 10, 5)
			sum += n
			time.Sleep(wait)
		}
		if sum < 1390 || sum > 1400+18 {
			t.Errorf("%d rows of low lanes in 10 s, want 1,400", sum)
		}
	})
}
