package load

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBound_Kept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bound Bound
		want  bool
		text  string
	}{
		{AtMost("p95", 49.9, 50, "ms"), true, "at most 50 ms"},
		{AtMost("p95", 50.1, 50, "ms"), false, "at most 50 ms"},
		{AtMost("p95", math.NaN(), 50, "ms"), false, "at most 50 ms"},
		{AtLeast("rows", 3, 4, "rows"), false, "at least 4 rows"},
		{Exactly("lost", 0, 0, "decisions"), true, "0 decisions"},
		{Exactly("lost", 1, 0, "decisions"), false, "0 decisions"},
		{Figure("pings", 446, "calls"), true, "none"},
		{Bound{Measured: 446, Least: 445.5, Most: 454.5, Unit: "rows/s"}, true, "445.5 to 454.5 rows/s"},
	} {
		if c.bound.Kept() != c.want || c.bound.Limits() != c.text {
			t.Errorf("%+v: kept %v, limits %q", c.bound, c.bound.Kept(), c.bound.Limits())
		}
	}
}

func TestTable_SaysWhatWasMissed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	Table(&b, []Result{
		{Number: 1, Name: "one", Bounds: []Bound{AtMost("p95", 12, 50, "ms"), AtMost("p99", 70, 50, "ms")}},
		{Number: 2, Name: "two", Err: errors.New("no server")},
	})
	for _, want := range []string{"| 1 | one | p95 | at most 50 ms | 12 | yes |", "| 70 | **no** |", "| 2 | two | | | | **not played** |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestMostWithin_NeverMoreThanTheTruth compares the answer with the true growth of a counter in any window.
func TestMostWithin_NeverMoreThanTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start, window := time.Unix(1_800_000_000, 0), 100*time.Millisecond
		var grants []time.Duration // each of one
		at := time.Duration(0)
		for range rapid.IntRange(0, 60).Draw(t, "grants") {
			at += time.Duration(rapid.IntRange(0, 30).Draw(t, "gap")) * time.Millisecond
			grants = append(grants, at)
		}
		count := func(until time.Duration) (n float64) {
			for _, g := range grants {
				if g <= until {
					n++
				}
			}
			return n
		}
		var samples []Sample
		for now := time.Duration(0); now < at+window; {
			asked := now
			looked := asked + time.Duration(rapid.IntRange(0, 10).Draw(t, "to the server"))*time.Millisecond
			answered := looked + time.Duration(rapid.IntRange(0, 10).Draw(t, "back"))*time.Millisecond
			samples = append(samples, Sample{start.Add(asked), start.Add(answered), count(looked)})
			now = answered + time.Duration(rapid.IntRange(1, 20).Draw(t, "pause"))*time.Millisecond
		}
		truth := 0.0
		for from := -window; from <= at; from += time.Millisecond {
			truth = max(truth, count(from+window)-count(from))
		}
		if got := MostWithin(samples, window); got > truth {
			t.Fatalf("%v grants within %v, the truth is %v", got, window, truth)
		}
	})
}

func TestMostWithin_SeesABurst(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	var samples []Sample
	for i, value := range []float64{0, 10, 500, 510, 520} {
		at := start.Add(time.Duration(i) * 400 * time.Millisecond)
		samples = append(samples, Sample{at, at.Add(time.Millisecond), value})
	}
	if got := MostWithin(samples, time.Second); got != 500 {
		t.Errorf("%v within a second, want 500", got)
	}
	if got := Rate(samples); math.Abs(got-325) > 0.1 {
		t.Errorf("rate %v, want 325", got)
	}
}

func TestQuantile_OfTimes(t *testing.T) {
	t.Parallel()
	times := []time.Duration{5 * time.Millisecond, time.Millisecond, 3 * time.Millisecond, 2 * time.Millisecond}
	if got := Quantile(times, 0.5); got != 2 {
		t.Errorf("median %v", got)
	}
	if got := Quantile(times, 0.99); got != 5 {
		t.Errorf("p99 %v", got)
	}
	if !math.IsNaN(Quantile(nil, 0.5)) || !math.IsNaN(Rate(nil)) {
		t.Error("nothing measured is not a number")
	}
}
