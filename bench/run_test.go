package bench

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   []float64
		want float64
	}{
		{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 9}, 3},
	} {
		given := slices.Clone(c.of)
		if got := Median(c.of); got != c.want || !slices.Equal(given, c.of) {
			t.Errorf("of %v: %v, left as %v", given, got, c.of)
		}
	}
	for _, of := range [][]float64{nil, {1, math.NaN(), 3}} {
		if got := Median(of); !math.IsNaN(got) {
			t.Errorf("of %v: %v", of, got)
		}
	}
}

func TestQuantile_IsASeenValue(t *testing.T) {
	t.Parallel()
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(100-i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := Quantile(values, q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if got := Quantile([]time.Duration{30, 10, 20}, 0.5); got != 20 {
		t.Errorf("the middle of three: %v", got)
	}
	if got := Quantile(nil, 0.5); got >= 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// runs are runs of one row that took so many seconds, with so much foreign work.
func runs(secondsAndForeign ...float64) (made []Run) {
	for i := 0; i < len(secondsAndForeign); i += 2 {
		made = append(made, Run{Rows: 1, Took: time.Duration(secondsAndForeign[i] * float64(time.Second)), Foreign: secondsAndForeign[i+1]})
	}
	return made
}

func TestBetween_NoisyIfEitherRunWas(t *testing.T) {
	t.Parallel()
	a, b := runs(1, 0, 1, 0.5, 1, 0, 1, 0.1), runs(2, 0, 8, 0, 8, 0.2, 4, 0.15)
	f := Between(a, b, Rates)
	if f.Value != 3 || f.Rounds != 2 || f.Noisy != 2 || f.AllNoisy() || !slices.Equal(f.Of, []float64{2, 4}) {
		t.Errorf("got %+v", f)
	}
}

func TestAllNoisy_HalfIsNotAll(t *testing.T) {
	t.Parallel()
	if f := Over(runs(1, 0, 2, 1), Run.Rate); f.AllNoisy() || f.Value != 1 {
		t.Errorf("got %+v", f)
	}
}

func TestOver_AllRoundsIfNoneIsQuiet(t *testing.T) {
	t.Parallel()
	f := Over(runs(1, 0.2, 0.5, 0.9, 0.25, 0.3), Run.Rate)
	if f.Value != 2 || f.Rounds != 3 || f.Noisy != 3 || !f.AllNoisy() {
		t.Errorf("got %+v", f)
	}
	if f := Over(nil, Run.Rate); !math.IsNaN(f.Value) || f.AllNoisy() {
		t.Errorf("of no rounds: %+v", f)
	}
}

func TestForeignShare_LeavesOutKnownUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		busy, known, elapsed time.Duration
		want                 float64
	}{
		{15 * time.Second, 12 * time.Second, 10 * time.Second, 0.15},
		{12 * time.Second, 13 * time.Second, 10 * time.Second, 0},
		{time.Second, 0, 0, 0},
	} {
		if got := ForeignShare(c.busy, c.known, c.elapsed, 2); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v busy, %v known in %v: %v, want %v", c.busy, c.known, c.elapsed, got, c.want)
		}
	}
}

func TestRun_RateAndCPU(t *testing.T) {
	t.Parallel()
	r := Run{Rows: 500_000, Took: 10 * time.Second, Worker: 2 * time.Second, Foreign: Noisy}
	if got := r.String(); got != "  50000 rows/s, worker 4.00 s of CPU a million, others 15 %" {
		t.Errorf("in words: %q", got)
	}
	if got := (Run{Rows: 10, Took: time.Second, Foreign: 0.5, Retries: 3}).String(); got != "     10 rows/s, others 50 %, noisy, 3 writes tried again" {
		t.Errorf("in words: %q", got)
	}
	if r.Rate() != 50_000 || r.WorkerCPU() != 4 || r.Noisy() {
		t.Errorf("%v rows a second, %v s of CPU a million, noisy %v", r.Rate(), r.WorkerCPU(), r.Noisy())
	}
}

func TestRun_RateLeavesOutFirstRow(t *testing.T) {
	t.Parallel()
	r := Run{Rows: 1_000_000, Counted: 900_000, Took: 9 * time.Second, Worker: 18 * time.Second}
	if r.Rate() != 100_000 || r.WorkerCPU() != 20 {
		t.Errorf("%v rows a second, %v s of CPU a million", r.Rate(), r.WorkerCPU())
	}
}
