package reader

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// mostSteps limits the steps of one request.
const mostSteps = 1000

// ParseStep reads the length of a step: whole minutes that divide a day (5m, 1h), or whole days (1d). Empty means a
// length that gives span some dozens of steps at most.
func ParseStep(text string, span time.Duration) (time.Duration, error) {
	const day = 24 * time.Hour
	if text == "" {
		switch {
		case span <= 2*time.Hour:
			return 5 * time.Minute, nil
		case span <= 2*day:
			return time.Hour, nil
		}
		return day, nil
	}
	d, err := time.ParseDuration(text)
	var days int
	if n, scanErr := fmt.Sscanf(text, "%dd", &days); scanErr == nil && n == 1 && days <= 366 && fmt.Sprintf("%dd", days) == text {
		d, err = time.Duration(days)*day, nil
	}
	if err != nil || d < time.Minute || d > 366*day || d%time.Minute != 0 || d < day && day%d != 0 || d > day && d%day != 0 {
		return 0, wrong("a step must be whole minutes that divide a day evenly, or whole days (5m, 1h, 1d)")
	}
	return d, nil
}

// NewStatsQuery makes a request for a range in whole steps: since is moved back and until forward. A zero until is
// now.
func NewStatsQuery(since, until time.Time, step string, now time.Time) (StatsQuery, error) {
	var q StatsQuery
	end := until
	if end.IsZero() {
		end = now
	}
	if !since.Before(end) {
		return q, wrong("the range is empty")
	}
	var err error
	if q.Step, err = ParseStep(step, end.Sub(since)); err != nil {
		return q, err
	}
	q.Since = since.UTC().Truncate(q.Step)
	if !until.IsZero() {
		if q.Until = until.UTC().Truncate(q.Step); q.Until.Before(until) {
			q.Until = q.Until.Add(q.Step)
		}
	}
	if n := end.Sub(q.Since) / q.Step; n > mostSteps {
		return q, wrong("that is %d steps, and at most %d are counted at once: take a longer step", n, mostSteps)
	}
	return q, nil
}

// Hourly is the request in steps of an hour, which archived days are counted by. It is false if the steps are as long already.
func (q StatsQuery) Hourly() (hourly StatsQuery, ok bool) {
	if q.Step >= time.Hour {
		return q, false
	}
	hourly = q
	hourly.Step, hourly.Since = time.Hour, q.Since.Truncate(time.Hour)
	if end := q.Until.Truncate(time.Hour); !q.Until.IsZero() && end.Before(q.Until) {
		hourly.Until = end.Add(time.Hour)
	}
	return hourly, true
}

// Counted is an answer of [CountStats].
type Counted[B any] struct {
	Lines []Stats
	Query StatsQuery // that was answered
	Begun B          // of begin, for this query
}

// CountStats asks a store for counts. If places were not read, and nobody chose the step, it also asks by the hour: days that left
// the table are counted so. It calls begin before it reads the rows of a query.
func CountStats[B any](ctx context.Context, s Store, q StatsQuery, chosen bool, begin func(StatsQuery) B) (Counted[B], error) {
	all := Counted[B]{Query: q, Begun: begin(q)}
	lines, lacks, err := countedBy(ctx, s, q)
	if err != nil {
		return all, err
	}
	all.Lines = lines
	if hourly, shorter := q.Hourly(); shorter && !chosen && len(lacks.NotRead()) > 0 {
		begun := begin(hourly)
		if other, left, err := countedBy(ctx, s, hourly); err == nil && len(left.NotRead()) < len(lacks.NotRead()) {
			all, lacks = Counted[B]{Lines: other, Query: hourly, Begun: begun}, left
		}
	}
	return all, Told(ctx, lacks.Err())
}

func countedBy(ctx context.Context, s Store, q StatsQuery) ([]Stats, *Parts, error) {
	ctx, lacks := WithParts(ctx)
	lines, err := s.Stats(ctx, q)
	return lines, lacks, lacks.Pass(err)
}

// Compare orders lines by time, then by name, OtherPaths last.
func (s Stats) Compare(o Stats) int {
	return cmp.Or(s.From.Compare(o.From), CompareNames(s.Name, o.Name))
}

// CompareNames orders names, OtherPaths last.
func CompareNames(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == OtherPaths:
		return 1
	case b == OtherPaths:
		return -1
	}
	return strings.Compare(a, b)
}

// DenyRate returns the share of denied ones among allowed and denied decisions, 0 to 1; false: there was none.
func DenyRate(counts map[Verdict]int64) (float64, bool) {
	denied, all := counts[Denied], counts[Denied]+counts[Allowed]
	if all == 0 {
		return 0, false
	}
	return float64(denied) / float64(all), true
}
