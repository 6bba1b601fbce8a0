package complete

import (
	"slices"
	"time"
)

// mostPoints limits the looks that an estimate comes from: a minute of looks each 5 s.
const mostPoints = 13

// pace follows how fast the consumers commit.
type pace struct{ points []point }

// point is the sum of all positions at a time.
type point struct {
	at  time.Time
	sum int64
}

func (p *pace) add(at time.Time, sum int64) {
	if n := len(p.points); n > 0 && sum < p.points[n-1].sum {
		p.points = nil // offsets were moved back
	}
	p.points = append(p.points, point{at, sum})
	if len(p.points) > mostPoints {
		p.points = slices.Delete(p.points, 0, 1)
	}
}

// estimate is how long records wait, with a band. Its fields are nil where nothing is known.
type estimate struct{ likely, low, high *int64 }

// eta estimates how long n waiting records take. It needs three looks. Low is by the fastest time between two
// looks, high by the slowest. High is nil if nothing was committed in it.
func (p *pace) eta(n int64) estimate {
	if n == 0 {
		return estimate{new(int64), new(int64), new(int64)}
	}
	if len(p.points) < 3 {
		return estimate{}
	}
	first, last := p.points[0], p.points[len(p.points)-1]
	fastest, slowest := 0.0, 0.0
	for i := 1; i < len(p.points); i++ {
		r := rate(p.points[i-1], p.points[i])
		fastest = max(fastest, r)
		if i == 1 || r < slowest {
			slowest = r
		}
	}
	return estimate{millis(n, rate(first, last)), millis(n, fastest), millis(n, slowest)}
}

// rate is in records a second.
func rate(from, to point) float64 {
	took := to.at.Sub(from.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(to.sum-from.sum) / took
}

// longest limits an estimate.
const longest = 10 * 365 * 24 * time.Hour

// millis is nil without a rate.
func millis(n int64, rate float64) *int64 {
	if rate <= 0 {
		return nil
	}
	ms := int64(min(float64(n)/rate*1000, float64(longest/time.Millisecond)))
	return &ms
}
