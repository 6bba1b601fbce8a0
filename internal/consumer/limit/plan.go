package limit

import "time"

// Plan has the limits of all processes together.
type Plan struct {
	// All and Low are rows a second. Low is at least 1 and lower than All.
	All, Low int
	// Burst is how many rows are granted at once at most, and in any second beyond the limit. It is at least 1.
	Burst int
	// Calendar has other low limits for hours of the day.
	Calendar Calendar
}

// Least is the lowest limit that leaves a row for the low lanes and one for the urgent lane.
const Least = 2

// NewPlan returns a plan. all is at least [Least]. If low is 0, it is nine tenths of all. If burst is 0, it is a tenth
// of all, at least 1.
func NewPlan(all, low, burst int, calendar Calendar) Plan {
	if low == 0 {
		low = max(1, all-max(1, all/10))
	}
	if burst == 0 {
		burst = max(1, all/10)
	}
	return Plan{all, low, burst, calendar}
}

// LowAt returns the low limit at a time, in rows a second.
func (p Plan) LowAt(t time.Time) int {
	if low, ok := p.Calendar.At(t); ok {
		return low
	}
	return p.Low
}

// Share is the part of the partitions that a process has. The zero value is nothing.
type Share struct{ Mine, All int }

// of returns this part of x. It is nothing while the number of all partitions is not known.
func (s Share) of(x float64) float64 {
	if s.Mine <= 0 || s.All <= 0 {
		return 0
	}
	return x * float64(min(s.Mine, s.All)) / float64(s.All)
}

// free is the part of the low limit, in tenths, that consumers leave free: one for the replayer and one for a restore.
const free = 2

// Consumer returns the part of a consumer with this share of the partitions. The parts of all consumers, of the
// replayers and of one restore add up to the limits.
func (p Plan) Consumer(now time.Time, s Share) Rates {
	low := float64(p.LowAt(now))
	left := low * free / 10
	return Rates{All: s.of(float64(p.All) - left), Low: s.of(low - left), Burst: p.burst(s, 10-free)}
}

// Tenth returns the part of a replayer with this share of its partitions, or of a restore with all of it. Everything
// that it writes counts as low.
func (p Plan) Tenth(now time.Time, s Share) Rates {
	low := s.of(float64(p.LowAt(now)) / 10)
	return Rates{All: low, Low: low, Burst: p.burst(s, 1)}
}

// burst returns a part of the burst, in tenths, at least 1. So the bursts of very many processes can add up to more:
// to one row each.
func (p Plan) burst(s Share, tenths float64) int {
	return max(1, int(s.of(float64(p.Burst)*tenths/10)))
}

// CutOff returns the limit of the urgent lane in a process that does not reach the shared state: its share of the limit
// minus the low limit. In no second it grants more than that, its burst included. The others use the whole limit
// meanwhile, so by that much can the sum pass it.
func (p Plan) CutOff(now time.Time, s Share) Rates {
	most := s.of(float64(p.All - p.LowAt(now)))
	burst := max(1, int(most/10))
	rate := most - float64(burst)
	if rate < most/2 { // a share of a row or two a second has no room for a burst
		rate = most
	}
	return Rates{All: rate, Low: rate, Burst: burst}
}
