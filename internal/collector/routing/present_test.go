package routing

import (
	"testing"
	"time"

	"docket/internal/consumer/lanes"
)

// Uploads are routed at the same time, each at the time at which it began. No bucket fills twice for the same time.
func TestRouter_UploadsAtOnceHaveOneShare(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{"verdict=error", "verdict=allowed"} {
		r := routed(t, rules, "label:id=10/s;urgent=10/s")
		settle(r, "proxy", fromShop+"true", t, start)
		l := logOf(t, fromShop+"true")
		inTime, most := map[lanes.Lane]int{}, burstOf(10)+1 // a tenth of a second is one decision
		for range 500 {
			for _, began := range []time.Time{start.Add(100 * time.Millisecond), start} {
				lane, _ := r.Route("proxy", l, began, new(Paid))
				inTime[lane]++
			}
		}
		if inTime[lanes.Default] > most || inTime[lanes.Urgent] > most {
			t.Errorf("%s: %v, want at most %d in a lane with a share", rules, inTime, most)
		}
	}
}

// A return at an earlier time fills no bucket twice either.
func TestRouter_ReturnAtAnEarlierTime(t *testing.T) {
	t.Parallel()
	r := routed(t, "verdict=error", "label:id=10/s")
	settle(r, "proxy", fromShop+"true", t, start)
	l := logOf(t, fromShop+"true")
	inTime := 0
	for range 500 {
		kept, returned := new(Paid), new(Paid)
		if lane, _ := r.Route("proxy", l, start.Add(100*time.Millisecond), kept); lane == lanes.Default {
			inTime++
		}
		r.Route("proxy", l, start.Add(100*time.Millisecond), returned)
		r.Return(returned, start)
	}
	if most := burstOf(10) + 1; inTime > most {
		t.Errorf("%d in the default lane, want at most %d", inTime, most)
	}
}
