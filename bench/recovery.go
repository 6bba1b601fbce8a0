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

// recovery returns two times after back. The first is that of the first row that was not there when the server was
// started again. The second is the begin of the first window of a second in which rows came at a rate. A window begins
// with that row at the earliest. A time that was not seen is 0.
func recovery(seen []progress, restarted, back time.Time, rate float64) (first, speed time.Duration) {
	there := int64(0)
	for _, p := range seen {
		if p.at.Before(restarted) {
			there = p.rows
		}
	}
	came := slices.IndexFunc(seen, func(p progress) bool { return p.rows > there && !p.at.Before(restarted) })
	if came < 0 {
		return 0, 0
	}
	seen = seen[came:]
	first = max(seen[0].at.Sub(back), time.Nanosecond)
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
