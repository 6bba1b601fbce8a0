package load

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Bound is one figure of a scenario and the limits that it must keep.
type Bound struct {
	What        string
	Measured    float64 // NaN: it was not measured, and no limit is kept
	Least, Most float64 // both allowed; equal: exactly this
	Unit        string
	// Timed says that the figure is a time or a rate, so that it says nothing in a short trial on a busy machine.
	Timed bool
}

// AtMost is a bound from above.
func AtMost(what string, measured, most float64, unit string) Bound {
	return Bound{What: what, Measured: measured, Least: math.Inf(-1), Most: most, Unit: unit}
}

// AtLeast is a bound from below.
func AtLeast(what string, measured, least float64, unit string) Bound {
	return Bound{What: what, Measured: measured, Least: least, Most: math.Inf(1), Unit: unit}
}

// Exactly is a bound from both sides.
func Exactly(what string, measured, want float64, unit string) Bound {
	return Bound{What: what, Measured: measured, Least: want, Most: want, Unit: unit}
}

// Figure has no limits. It is beside a bound, to explain it.
func Figure(what string, measured float64, unit string) Bound {
	return Bound{What: what, Measured: measured, Least: math.Inf(-1), Most: math.Inf(1), Unit: unit}
}

// ByTime marks a bound as one that only a whole run judges.
func (b Bound) ByTime() Bound {
	b.Timed = true
	return b
}

// Kept reports whether the figure keeps its limits.
func (b Bound) Kept() bool { return b.Measured >= b.Least && b.Measured <= b.Most }

// free reports whether there are no limits.
func (b Bound) free() bool { return math.IsInf(b.Least, -1) && math.IsInf(b.Most, 1) }

// Limits returns the limits in words.
func (b Bound) Limits() string {
	switch {
	case b.free():
		return "none"
	case b.Least == b.Most:
		return fmt.Sprintf("%g %s", b.Most, b.Unit)
	case math.IsInf(b.Least, -1):
		return fmt.Sprintf("at most %g %s", b.Most, b.Unit)
	case math.IsInf(b.Most, 1):
		return fmt.Sprintf("at least %g %s", b.Least, b.Unit)
	}
	return fmt.Sprintf("%g to %g %s", b.Least, b.Most, b.Unit)
}

// Result is a scenario that was played.
type Result struct {
	Number int // in the list of scenarios
	Name   string
	Took   time.Duration
	Bounds []Bound
	Err    error // it could not be played to its end
}

// Table writes the results as a table in Markdown, a line for each bound.
func Table(to io.Writer, results []Result) {
	fmt.Fprint(to, "| no | scenario | figure | bound | measured | kept |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		if r.Err != nil {
			fmt.Fprintf(to, "| %d | %s | | | | **not played** |\n", r.Number, r.Name)
		}
		for _, b := range r.Bounds {
			kept := "yes"
			switch {
			case b.free():
				kept = ""
			case !b.Kept():
				kept = "**no**"
			}
			fmt.Fprintf(to, "| %d | %s | %s | %s | %.4g | %s |\n", r.Number, r.Name, b.What, b.Limits(), b.Measured, kept)
		}
	}
}

// Sample is the value of a counter that was read between two moments.
type Sample struct {
	Asked, Answered time.Time
	Value           float64
}

// MostWithin returns the largest growth of a counter that surely happened within a window. Samples are in order of time.
// Two of them are compared if the first was asked for no longer than the window before the second was answered. So the
// true growth in some window of this length is at least the returned one.
func MostWithin(samples []Sample, window time.Duration) float64 {
	most, from := 0.0, 0
	for _, s := range samples {
		for s.Answered.Sub(samples[from].Asked) > window {
			from++
		}
		most = max(most, s.Value-samples[from].Value)
	}
	return most
}

// Above returns by how much a counter grew more than a limit a second allows, from the first sample to the last.
func Above(samples []Sample, limit float64) float64 {
	first, last := samples[0], samples[len(samples)-1]
	return last.Value - first.Value - limit*last.Answered.Sub(first.Asked).Seconds()
}

// Rate returns the growth of a counter a second, from the first sample to the last. It is NaN without two of them.
func Rate(samples []Sample) float64 {
	if len(samples) < 2 {
		return math.NaN()
	}
	first, last := samples[0], samples[len(samples)-1]
	return (last.Value - first.Value) / last.Answered.Sub(first.Answered).Seconds()
}

// Quantile returns the smallest time that at least the share q of all times do not exceed, in milliseconds. It is NaN of
// none.
func Quantile(times []time.Duration, q float64) float64 {
	if len(times) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(times))
	at := max(0, min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1))
	return float64(sorted[at]) / float64(time.Millisecond)
}
