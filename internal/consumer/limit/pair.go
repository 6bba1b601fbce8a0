package limit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Rates are the limits of a [Pair], in rows a second. Low is lower than All.
type Rates struct {
	All, Low int
	// Burst is how many rows are granted at once at most, and in any second beyond the limit. It is at least 1.
	Burst int
}

// Pair is the limit of all lanes and that of the low lanes. It is not safe for concurrent use.
type Pair struct {
	all, low *rate.Limiter
}

// NewPair returns a pair whose buckets are full.
func NewPair(r Rates) *Pair {
	return &Pair{rate.NewLimiter(rate.Limit(r.All), r.Burst), rate.NewLimiter(rate.Limit(r.Low), r.Burst)}
}

// Set changes the limits. It keeps the tokens that are there, as many as the new burst allows.
func (p *Pair) Set(now time.Time, r Rates) {
	for l, limit := range map[*rate.Limiter]int{p.all: r.All, p.low: r.Low} {
		l.SetLimitAt(now, rate.Limit(limit))
		l.SetBurstAt(now, r.Burst)
	}
}

// Take grants up to n rows, n at least 1, and takes their tokens. If it grants none, wait is the time until it can
// grant one. It looks at both buckets before it takes from either: a low lane that the low limit delays costs the
// urgent lane nothing.
func (p *Pair) Take(now time.Time, low bool, n int) (granted int, wait time.Duration) {
	buckets := []*rate.Limiter{p.all}
	if low {
		buckets = append(buckets, p.low)
	}
	granted = n
	for _, b := range buckets {
		there := b.TokensAt(now)
		granted = min(granted, int(there))
		if there < 1 {
			wait = max(wait, time.Duration(math.Ceil((1-there)/float64(b.Limit())*1e9)))
		}
	}
	if granted <= 0 {
		return 0, wait
	}
	for _, b := range buckets {
		b.AllowN(now, granted)
	}
	return granted, 0
}
