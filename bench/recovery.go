package bench

import (
	"slices"
	"time"
)

// window is the time over which a rate counts as back.
const window = 500 * time.Millisecond

// progress is how many rows there were at a moment.
type progress struct {
	at   time.Time
	rows int64
}

// recovery says how long after a moment the first row beyond those that were there was seen, and how long after it the first
// window began in which rows came at a rate, by a second. A window begins with that row at the earliest. Without such a
// window the latter is 0.
func recovery(seen []progress, there int64, back time.Time, rate float64) (first, speed time.Duration) {
	came := slices.IndexFunc(seen, func(p progress) bool { return p.rows > there })
	if came < 0 {
		return 0, 0
	}
	seen = seen[came:]
	first = seen[0].at.Sub(back)
	end := 0
	for begin, p := range seen {
		for end < len(seen) && seen[end].at.Sub(p.at) < window {
			end++
		}
		if end == len(seen) {
			return first, 0
		}
		rows := seen[end].rows - seen[begin].rows
		if float64(rows)/seen[end].at.Sub(p.at).Seconds() >= rate {
			return first, max(p.at.Sub(back), time.Nanosecond)
		}
	}
	return first, 0
}
