package bench

import (
	"testing"
	"time"
)

func TestNextLook_SeldomAndExactAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, each := range []time.Duration{time.Microsecond, 15 * time.Microsecond, time.Millisecond} {
		const want = 1_000_000
		end := want * each
		now, looks := time.Duration(0), 0
		for n := int64(0); n < want; n = min(want, int64(now/each)) {
			now += NextLook(n, want, now)
			looks++
		}
		if late := now - end; late < 0 || late > often {
			t.Errorf("the end at %v is seen %v later", end, late)
		}
		if most := int(end/seldom) + 30; looks > most {
			t.Errorf("asked %d times in %v, at most %d will do", looks, end, most)
		}
	}
}
