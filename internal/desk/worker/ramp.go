package worker

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// ramp limits the letters that a job moves in a step: one, then twice as many each time, never above the rate.
type ramp struct {
	size  int
	most  int
	limit *rate.Limiter // nil: no limit
}

// newRamp makes a ramp that begins with first. perSecond 0 means no rate. A late step may make up for one step, no
// more.
func newRamp(perSecond float64, step time.Duration, first, most int) *ramp {
	r := &ramp{size: first, most: most}
	if perSecond > 0 {
		burst := 1 + int(math.Ceil(min(2*perSecond*step.Seconds(), float64(most))))
		r.limit = rate.NewLimiter(rate.Limit(perSecond), burst)
		r.limit.AllowN(time.Now(), burst-1)
	}
	return r
}

// allows returns how many the rate allows now, at most n.
func (r *ramp) allows(n int) int {
	if r.limit == nil {
		return n
	}
	return max(0, min(n, int(r.limit.Tokens())))
}

// sent notes n moved letters.
func (r *ramp) sent(n int) {
	if r.limit != nil {
		r.limit.AllowN(time.Now(), n)
	}
}

// grow doubles the next step.
func (r *ramp) grow() { r.size = min(2*r.size, r.most) }

// speed measures how many letters a second a job moved in its last steps.
type speed struct {
	at   []time.Time
	sent []int64
}

// speedSteps is the number of steps that are measured.
const speedSteps = 10

// note notes the present number, and returns the speed over the last steps.
func (s *speed) note(now time.Time, sent int64) float64 {
	s.at, s.sent = append(s.at, now), append(s.sent, sent)
	if len(s.at) > speedSteps {
		s.at, s.sent = s.at[1:], s.sent[1:]
	}
	took := now.Sub(s.at[0]).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(sent-s.sent[0]) / took
}
