package limit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.Unix(1_800_000_000, 0)

type grant struct {
	at  time.Time
	n   int
	low bool
}

// there returns how many tokens a lane can have.
func (p *Pair) there(now time.Time, low bool) float64 {
	if low {
		return min(p.all.TokensAt(now), p.low.TokensAt(now))
	}
	return p.all.TokensAt(now)
}

// most returns the most rows that were granted within any span of this length; with low only those of the low lanes.
func most(grants []grant, span time.Duration, low bool) (n int) {
	var sum int
	first := 0
	for _, g := range grants {
		if low && !g.low {
			continue
		}
		sum += g.n
		for grants[first].at.Before(g.at.Add(-span)) || low && !grants[first].low {
			if !low || grants[first].low {
				sum -= grants[first].n
			}
			first++
		}
		n = max(n, sum)
	}
	return n
}

func TestPair_NeverBeyondLimitAndBurst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := Rates{All: float64(rapid.IntRange(2, 5000).Draw(t, "all")), Burst: rapid.IntRange(1, 500).Draw(t, "burst")}
		r.Low = float64(rapid.IntRange(1, int(r.All)-1).Draw(t, "low"))
		p := NewPair(epoch, r)
		now := epoch
		var grants []grant
		for range rapid.IntRange(1, 300).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 300_000).Draw(t, "µs")) * time.Microsecond)
			low := rapid.Bool().Draw(t, "low lane")
			n, least := rapid.IntRange(1, 600).Draw(t, "rows"), rapid.IntRange(0, 600).Draw(t, "least")
			got, wait := p.Take(now, low, n, least)
			least = max(1, min(least, n, r.Burst))
			switch {
			case got < 0 || got > n || (got == 0) != (wait > 0) || got > 0 && got < least:
				t.Fatalf("granted %d of %d, wait %v", got, n, wait)
			case got > 0:
				grants = append(grants, grant{now, got, low})
			case wait < longest && p.there(now.Add(wait), low) < float64(least)-0.000001:
				t.Fatalf("too few rows after the wait of %v", wait)
			case wait > time.Microsecond && p.there(now.Add(wait-wait/8), low) >= float64(least):
				t.Fatalf("enough rows long before the wait of %v was over", wait)
			}
		}
		for _, span := range []time.Duration{time.Second, 100 * time.Millisecond, 3 * time.Second} {
			rate := func(a float64) int { return int(a*span.Seconds()) + 1 }
			if n := most(grants, span, false); n > rate(r.All)+r.Burst {
				t.Fatalf("%d rows in %v, limit %v, burst %d", n, span, r.All, r.Burst)
			}
			if n := most(grants, span, true); n > rate(r.Low)+r.Burst {
				t.Fatalf("%d rows of the low lanes in %v, limit %v, burst %d", n, span, r.Low, r.Burst)
			}
		}
	})
}

// With somebody always waiting the whole limit is granted.
func TestPair_SustainsTheLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		low  bool
		want int
	}{"urgent": {false, 450}, "low alone": {true, 350}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := NewPair(epoch, Rates{All: 450, Low: 350, Burst: 45})
			var total int
			for now := epoch; now.Before(epoch.Add(100 * time.Second)); now = now.Add(7 * time.Millisecond) {
				got, _ := p.Take(now, test.low, 45, 1)
				total += got
			}
			if want := test.want * 100; total < want*99/100 || total > want+45 {
				t.Fatalf("%d rows in 100 s, want %d", total, want)
			}
		})
	}
}

// An empty low bucket costs the urgent lane nothing.
func TestPair_ChecksBeforeItTakes(t *testing.T) {
	t.Parallel()
	p := NewPair(epoch, Rates{All: 100, Low: 1, Burst: 10})
	now := epoch.Add(time.Second / 10) // ten tokens of the whole limit, a tenth of one of the low limit
	for range 5 {
		if got, wait := p.Take(now, true, 10, 1); got != 0 || wait < 800*time.Millisecond {
			t.Fatalf("granted %d, wait %v", got, wait)
		}
	}
	if got, _ := p.Take(now, false, 10, 1); got != 10 {
		t.Fatalf("the urgent lane got %d of 10 rows", got)
	}
}

func TestPair_StartsEmpty(t *testing.T) {
	t.Parallel()
	p := NewPair(epoch, Rates{All: 100, Low: 50, Burst: 10})
	for _, low := range []bool{false, true} {
		if got, wait := p.Take(epoch, low, 10, 1); got != 0 || wait > 20*time.Millisecond {
			t.Errorf("granted %d at the start, wait %v", got, wait)
		}
	}
	if got, _ := p.Take(epoch.Add(time.Hour), true, 100, 1); got != 10 {
		t.Errorf("granted %d of a burst of 10", got)
	}
}

func TestPair_GrantsTheLeastOrNothing(t *testing.T) {
	t.Parallel()
	p := NewPair(epoch, Rates{All: 100, Low: 50, Burst: 10})
	now := epoch.Add(40 * time.Millisecond) // four tokens of the whole limit, two of the low one
	if got, wait := p.Take(now, true, 9, 3); got != 0 || wait != 20*time.Millisecond {
		t.Errorf("granted %d, wait %v", got, wait)
	}
	if got, wait := p.Take(now, false, 9, 99); got != 0 || wait != 50*time.Millisecond {
		t.Errorf("granted %d, wait %v: the least counts as no more than is asked for", got, wait)
	}
	if got, _ := p.Take(now, false, 9, 4); got != 4 {
		t.Errorf("granted %d of the four that are there", got)
	}
}

func TestPair_SetKeepsWhatWasTaken(t *testing.T) {
	t.Parallel()
	p := NewPair(epoch, Rates{All: 100, Low: 50, Burst: 10})
	p.Set(epoch, Rates{All: 1000, Low: 50, Burst: 100})
	if got, wait := p.Take(epoch, false, 1, 1); got != 0 || wait != time.Millisecond {
		t.Fatalf("granted %d, wait %v after the limit was raised", got, wait)
	}
}

// Each of the four numbers that Set changes is looked at alone.
func TestPair_SetChangesBothBuckets(t *testing.T) {
	t.Parallel()
	later := epoch.Add(time.Minute) // both buckets are full
	for name, c := range map[string]struct {
		low        bool
		n          int
		next       int           // after another 100 ms
		wait       time.Duration // for one token after that
		set, other Rates
	}{
		"urgent": {false, 30, 20, 5 * time.Millisecond, Rates{200, 10, 30}, Rates{100, 10, 60}},
		"low":    {true, 30, 4, 25 * time.Millisecond, Rates{200, 40, 30}, Rates{200, 10, 60}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := NewPair(epoch, c.other)
			p.Set(later, c.set)
			if got, _ := p.Take(later, c.low, 100, 1); got != c.n {
				t.Errorf("granted %d, want the new burst of %d", got, c.n)
			}
			if got, _ := p.Take(later.Add(100*time.Millisecond), c.low, 100, 1); got != c.next {
				t.Errorf("granted %d in 100 ms at the new limit, want %d", got, c.next)
			}
			if _, wait := p.Take(later.Add(100*time.Millisecond), c.low, 1, 1); wait != c.wait {
				t.Errorf("wait %v, want %v", wait, c.wait)
			}
			if !c.low { // the low bucket has its own burst, which the urgent lane does not show
				p.Set(later.Add(time.Hour), Rates{1e6, 10, 5})
				if got, _ := p.Take(later.Add(time.Hour), true, 100, 1); got != 5 {
					t.Errorf("granted %d to a low lane, want the new burst of 5", got)
				}
			}
		})
	}
}

// A limit of nothing grants nothing, and says so without a wait that overflows.
func TestPair_NoLimitAtAllWaits(t *testing.T) {
	t.Parallel()
	p := NewPair(epoch, Rates{Burst: 1})
	if got, wait := p.Take(epoch.Add(time.Hour), false, 1, 1); got != 0 || wait != time.Second {
		t.Errorf("granted %d, wait %v", got, wait)
	}
}
