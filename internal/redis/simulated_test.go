package redis

import (
	"time"

	"docket/internal/consumer/limit"
)

// simulated is the exact answer of the script, in whole numbers.
type simulated struct {
	plan    limit.Plan
	buckets [2]simulatedBucket
}

type simulatedBucket struct {
	known             bool
	tokens, at, limit int64 // millionths of a row, microseconds, rows a second
}

const million = 1_000_000

// take answers a call at this time of the server, in microseconds.
func (s *simulated) take(now int64, low bool, n, least int) (granted int, wait time.Duration) {
	hours := s.plan.Calendar
	limits := [2]int64{int64(s.plan.All), int64(s.plan.Low)}
	if other, ok := hours.At(time.UnixMicro(now)); ok {
		limits[1] = int64(other)
	}
	least = max(1, min(least, n, s.plan.Burst))
	full := int64(s.plan.Burst) * million
	used := s.buckets[:1]
	if low {
		used = s.buckets[:2]
	}
	granted = n
	for i := range used {
		b := &used[i]
		if !b.known {
			*b = simulatedBucket{true, 0, now, limits[i]}
		}
		rate := min(b.limit, limits[i])
		since := now - b.at
		if since > 0 || since < -million {
			b.at = now
		}
		if since > 0 {
			if since > full/rate+1 {
				since = full/rate + 1
			}
			b.tokens += since * rate
		}
		b.tokens, b.limit = min(b.tokens, full), limits[i]
		granted = min(granted, int(b.tokens/million))
	}
	if granted < least {
		granted, wait = 0, time.Millisecond
		for i := range used {
			missing := int64(least)*million - used[i].tokens
			if missing > 0 {
				wait = max(wait, time.Duration((missing+limits[i]*1000-1)/(limits[i]*1000))*time.Millisecond)
			}
		}
	}
	for i := range used {
		used[i].tokens -= int64(granted) * million
	}
	return granted, wait
}

// granted is one grant.
type granted struct {
	at  int64 // of the server, in microseconds
	n   int
	low bool
}

// most returns the most rows within any second; with low only those of the low lanes. The grants are in order.
func most(all []granted, low bool) (n int) {
	sum, first := 0, 0
	weight := func(g granted) int {
		if low && !g.low {
			return 0
		}
		return g.n
	}
	for _, g := range all {
		sum += weight(g)
		for all[first].at <= g.at-million {
			sum -= weight(all[first])
			first++
		}
		n = max(n, sum)
	}
	return n
}
