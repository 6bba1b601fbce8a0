package bench

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Noisy is the share of the machine from which on the work of others spoils a run.
const Noisy = 0.15

// Run is what was seen in one run.
type Run struct {
	Rows    int64         // decisions that got their home, or rows that were copied
	Took    time.Duration // from the first fetch to the last row
	StartUp time.Duration // of the process, before that
	Counted int64         // rows that came in Took and that Worker is about; 0: all
	Warm    float64       // rows a second in the second half; 0 where that was not looked at

	Worker, Postgres, Kafka time.Duration // processor time, user and system
	Foreign                 float64       // share of the machine that others used, 0 to 1

	Peak, HalfPeak int64 // bytes of memory of the worker at its peak: at the end, and when half was done
	WAL            int64 // bytes that Postgres logged
	OnDisk         int64 // bytes of the table after the run, with its indexes; 0 where that was not looked at

	Batches, Probes int64         // batches, and writes in search of bad rows
	InBatches       time.Duration // from batches in hand to the last of their homes
	InCalls         time.Duration // calls to Redis for rows of the limit, all together
	Retries         int64         // writes that were tried again after a pause, as on a machine that is too busy

	Uploads   int64   // that were answered 200
	Uploaders int     // that sent them, each one after the other
	InBatch   float64 // decisions in a batch for the broker

	Delays          []time.Duration // from append to row, of those that were looked at
	FirstRow, Speed time.Duration   // after an outage: until a row came, and until the rate was back; 0 where that was not seen
	Spread          float64         // lag of the instance that is furthest behind, against the mean of all
}

// Rate is rows a second.
func (r Run) Rate() float64 { return float64(r.counted()) / r.Took.Seconds() }

// WorkerCPU is processor seconds of the worker for a million decisions.
func (r Run) WorkerCPU() float64 { return r.Worker.Seconds() / float64(r.counted()) * 1e6 }

// AllCPU is processor seconds of worker, Postgres and Kafka for a million decisions.
func (r Run) AllCPU() float64 {
	return (r.Worker + r.Postgres + r.Kafka).Seconds() / float64(r.counted()) * 1e6
}

// BytesOnDisk is what a decision takes in the table and its indexes.
func (r Run) BytesOnDisk() float64 { return float64(r.OnDisk) / float64(r.counted()) }

// UploadTime is the mean of how long an uploader waited for its answer, in milliseconds.
func (r Run) UploadTime() float64 {
	return r.Took.Seconds() * 1000 * float64(r.Uploaders) / float64(r.Uploads)
}

// Share is which part of all that the machine could do in this time some processor time is, 0 to 1.
func (r Run) Share(used time.Duration) float64 {
	return used.Seconds() / (r.Took.Seconds() * float64(runtime.NumCPU()))
}

func (r Run) counted() int64 {
	if r.Counted > 0 {
		return r.Counted
	}
	return r.Rows
}

// Noisy says that others used so much of the machine that the run says little.
func (r Run) Noisy() bool { return r.Foreign > Noisy }

// String is a run in a few words.
func (r Run) String() string {
	s := fmt.Sprintf("%7.0f rows/s", r.Rate())
	if r.Worker > 0 {
		s += fmt.Sprintf(", worker %.2f s of CPU a million", r.WorkerCPU())
	}
	s += fmt.Sprintf(", others %.0f %%", r.Foreign*100)
	if r.Noisy() {
		s += ", noisy"
	}
	if r.Uploads > 0 {
		s += fmt.Sprintf(", %d uploads from %d, %.1f ms each, %.1f in a batch", r.Uploads, r.Uploaders, r.UploadTime(), r.InBatch)
	}
	switch {
	case r.Retries > 0 && r.Uploads > 0:
		s += fmt.Sprintf(", %d uploads put off", r.Retries)
	case r.Retries > 0:
		s += fmt.Sprintf(", %d writes tried again", r.Retries)
	}
	return s
}

// Median of values; with an even number of them the mean of the two in the middle. It is NaN of none, and if any value is
// NaN: the other rounds do not make up for one without a figure.
func Median(values []float64) float64 {
	if len(values) == 0 || slices.ContainsFunc(values, math.IsNaN) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Quantile is the smallest value that at least the share q of all values do not exceed, -1 of none.
func Quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return -1
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1))]
}

// Figure is a median over rounds.
type Figure struct {
	Value  float64
	Of     []float64 // the values, by round
	Rounds int       // that were taken
	Noisy  int       // rounds that others spoilt: left out, unless there was no other

	noQuiet bool
}

// AllNoisy says that there was no quiet round, so that the figure is one of noisy rounds.
func (f Figure) AllNoisy() bool { return f.Rounds > 0 && f.noQuiet }

// Over is the median of what f makes of each run.
func Over(runs []Run, f func(Run) float64) Figure {
	return Between(runs, runs, func(r, _ Run) float64 { return f(r) })
}

// Between is the median of what f makes of two runs of the same round. A round is noisy where either run was.
func Between(a, b []Run, f func(a, b Run) float64) Figure {
	var quiet, all []float64
	noisy := 0
	for i := range min(len(a), len(b)) {
		value := f(a[i], b[i])
		all = append(all, value)
		if a[i].Noisy() || b[i].Noisy() {
			noisy++
			continue
		}
		quiet = append(quiet, value)
	}
	if len(quiet) == 0 {
		return Figure{Value: Median(all), Of: all, Rounds: len(all), Noisy: noisy, noQuiet: true}
	}
	return Figure{Value: Median(quiet), Of: quiet, Rounds: len(quiet), Noisy: noisy}
}

// Rates is the ratio of two rates.
func Rates(a, b Run) float64 { return a.Rate() / b.Rate() }

// CPUs is the ratio of the processor time of two runs, decision for decision.
func CPUs(a, b Run) float64 { return a.WorkerCPU() / b.WorkerCPU() }

// ForeignShare is the share of the machine that others used: the busy time less the known time, by the time of all cores.
// The known time can be read a little later than the busy time, so the share may come out below zero: then it is zero.
func ForeignShare(busy, known, elapsed time.Duration, cores int) float64 {
	if elapsed <= 0 || cores <= 0 {
		return 0
	}
	return max(0, (busy-known).Seconds()/(elapsed.Seconds()*float64(cores)))
}
