package panels

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Run is the time over which is looked, and how often Prometheus scrapes.
type Run struct {
	From, To time.Time
	Now      time.Time // the moment of what is asked for one moment; To where it is zero
	Scrape   time.Duration
}

// step gives a few hundred moments, and never less than one for each scrape where the run is short.
func (r Run) step() time.Duration {
	return max(r.Scrape, (r.To.Sub(r.From) / 500).Truncate(time.Second))
}

// Result is how many queries were asked and how many returned data. Quiet are those that returned none and may.
type Result struct {
	Asked, Data int
	Quiet       []string
}

// String is the closing line.
func (r Result) String() string {
	s := fmt.Sprintf("%d of %d queries of the dashboard returned data", r.Data, r.Asked)
	if len(r.Quiet) > 0 {
		s += fmt.Sprintf("; %d are of what did not happen here: %v", len(r.Quiet), r.Quiet)
	}
	return s
}

// Check asks everything that the dashboard asks over the run. Its error names every query that returned nothing and is
// not quiet, and every one that Prometheus refuses.
func Check(ctx context.Context, p Prometheus, d Dashboard, r Run) (Result, error) {
	var result Result
	var wrong []error
	now := r.Now
	if now.IsZero() {
		now = r.To
	}
	for _, q := range d.Queries {
		result.Asked++
		expr := d.Resolve(q.Expr, r.Scrape, r.To.Sub(r.From))
		var series []Series
		var err error
		if q.Point {
			series, err = p.At(ctx, expr, now)
		} else {
			series, err = p.Range(ctx, expr, r.From, r.To, r.step())
		}
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%v: %w: %s", q, err, expr))
		case hasData(series):
			result.Data++
		case q.Quiet:
			result.Quiet = append(result.Quiet, q.String())
		default:
			wrong = append(wrong, fmt.Errorf("%v returned no data: %s", q, expr))
		}
	}
	return result, errors.Join(wrong...)
}

// hasData says whether a panel can show one of the values. Grafana does not draw NaN; +Inf is an answer.
func hasData(series []Series) bool {
	for _, s := range series {
		for _, v := range s.Samples {
			if !math.IsNaN(v.Value) {
				return true
			}
		}
	}
	return false
}

// Always demands that expr had data in the run and never another value than want.
func Always(ctx context.Context, p Prometheus, expr string, want float64, r Run) error {
	series, err := p.Range(ctx, expr, r.From, r.To, r.Scrape)
	if err != nil {
		return fmt.Errorf("%s: %w", expr, err)
	}
	if !hasData(series) {
		return fmt.Errorf("%s: no data", expr)
	}
	for _, s := range series {
		for _, v := range s.Samples {
			if v.Value != want {
				return fmt.Errorf("%s was %v at %s, want %v: %v", expr, v.Value, v.At.UTC().Format(time.TimeOnly), want, s.Labels)
			}
		}
	}
	return nil
}
