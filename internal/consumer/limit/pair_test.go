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
		r := Rates{All: rapid.IntRange(2, 5000).Draw(t, "all"), Burst: rapid.IntRange(1, 500).Draw(t, "burst")}
		r.Low = rapid.IntRange(1, r.All-1).Draw(t, "low")
		p := NewPair(r)
		now := epoch
		var grants []grant
		for range rapid.IntRange(1, 300).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 300_000).Draw(t, "µs")) * time.Microsecond)
			low := rapid.Bool().Draw(t, "low lane")
			n := rapid.IntRange(1, 600).Draw(t, "rows")
			got, wait := p.Take(now, low, n)
			switch {
			case got < 0 || got > n || (got == 0) != (wait > 0):
				t.Fatalf("granted %d of %d, wait %v", got, n, wait)
			case got > 0:
				grants = append(grants, grant{now, got, low})
			case p.there(now.Add(wait), low) < 0.999999:
				t.Fatalf("no row after the wait of %v", wait)
			case wait > time.Microsecond && p.there(now.Add(wait-wait/8), low) >= 1:
				t.Fatalf("a row long before the wait of %v was over", wait)
			}
		}
		for _, span := range []time.Duration{time.Second, 100 * time.Millisecond, 3 * time.Second} {
			rate := func(a int) int { return a*int(span)/int(time.Second) + 1 }
			if n := most(grants, span, false); n > rate(r.All)+r.Burst {
				t.Fatalf("%d rows in %v, limit %d, burst %d", n, span, r.All, r.Burst)
			}
			if n := most(grants, span, true); n > rate(r.Low)+r.Burst {
				t.Fatalf("%d rows of the low lanes in %v, limit %d, burst %d", n, span, r.Low, r.Burst)
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
			p := NewPair(Rates{All: 450, Low: 350, Burst: 45})
			var total int
			for now := epoch; now.Before(epoch.Add(100 * time.Second)); now = now.Add(7 * time.Millisecond) {
				got, _ := p.Take(now, test.low, 45)
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
	p := NewPair(Rates{All: 100, Low: 1, Burst: 10})
	if got, _ := p.Take(epoch, true, 10); got != 10 {
		t.Fatalf("granted %d of the burst", got)
	}
	now := epoch.Add(time.Second / 10) // ten tokens of the whole limit, none of the low one
	for range 5 {
		if got, wait := p.Take(now, true, 10); got != 0 || wait < 800*time.Millisecond {
			t.Fatalf("granted %d, wait %v", got, wait)
		}
	}
	if got, _ := p.Take(now, false, 10); got != 10 {
		t.Fatalf("the urgent lane got %d of 10 rows", got)
	}
}

func TestPair_SetKeepsWhatWasTaken(t *testing.T) {
	t.Parallel()
	p := NewPair(Rates{All: 100, Low: 50, Burst: 10})
	p.Take(epoch, false, 10)
	p.Set(epoch, Rates{All: 1000, Low: 50, Burst: 100})
	if got, wait := p.Take(epoch, false, 1); got != 0 || wait != time.Millisecond {
		t.Fatalf("granted %d, wait %v after the limit was raised", got, wait)
	}
}
