package limit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Rates are the limits of a [Pair].
type Rates struct {
	// All and Low are rows a second, 0 for none. Low is not higher than All.
	All, Low float64
	// Burst is how many rows are granted at once at most, and in any second beyond the limit. It is at least 1.
	Burst int
}

// Pair is the limit of all lanes and that of the low lanes. It is not safe for concurrent use.
type Pair struct {
	all, low *rate.Limiter
}

// NewPair returns a pair whose buckets are empty. If they were full, a process that starts again and again would grant
// a burst at each start.
func NewPair(now time.Time, r Rates) *Pair {
	p := &Pair{rate.NewLimiter(rate.Limit(r.All), r.Burst), rate.NewLimiter(rate.Limit(r.Low), r.Burst)}
	p.all.AllowN(now, r.Burst)
	p.low.AllowN(now, r.Burst)
	return p
}

// Set changes the limits. It keeps the tokens that are there, as many as the new burst allows.
func (p *Pair) Set(now time.Time, r Rates) {
	for l, limit := range map[*rate.Limiter]float64{p.all: r.All, p.low: r.Low} {
		l.SetLimitAt(now, rate.Limit(limit))
		l.SetBurstAt(now, r.Burst)
	}
}

// longest is the longest wait that Take returns: the limits may change meanwhile.
const longest = time.Second

// Take grants from least to n rows, or none, and takes their tokens. At least 1 is asked for. The least counts as no
// more than n and the burst. If it grants none, it returns the time until it can grant the least, at most a second.
//
// It looks at both buckets before it takes from either. So a low lane that the low limit delays costs the urgent lane
// nothing.
func (p *Pair) Take(now time.Time, low bool, n, least int) (granted int, wait time.Duration) {
	buckets := []*rate.Limiter{p.all}
	if low {
		buckets = append(buckets, p.low)
	}
	least = max(1, min(least, n, p.all.Burst()))
	granted = n
	for _, b := range buckets {
		there := b.TokensAt(now)
		granted = min(granted, int(there))
		if missing := float64(least) - there; missing > 0 {
			wait = max(wait, waitFor(missing, float64(b.Limit())))
		}
	}
	if granted < least {
		return 0, wait
	}
	for _, b := range buckets {
		b.AllowN(now, granted)
	}
	return granted, 0
}

// waitFor returns the time in which this many tokens come, at most the longest wait.
func waitFor(tokens, limit float64) time.Duration {
	if seconds := tokens / limit; seconds < longest.Seconds() { // false for a limit of 0, too
		return max(1, time.Duration(math.Ceil(seconds*1e9)))
	}
	return longest
}
