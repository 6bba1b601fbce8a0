package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// counting is a Store that takes everything and keeps nothing.
type counting struct{ out []Outcome }

func (c *counting) Store(_ context.Context, rows []Row, _ bool) ([]Outcome, error) {
	return c.out[:len(rows)], nil
}
func (c *counting) Foresee(context.Context, []Row, string) ([]int, error) { return nil, nil }
func (c *counting) Refusals(_ context.Context, rows []Row, _ time.Time) ([]error, error) {
	return make([]error, len(rows)), nil
}

func (c *counting) Probe(context.Context, time.Time) error { return nil }

func newCounting(n int) *counting {
	c := &counting{out: make([]Outcome, n)}
	for i := range c.out {
		c.out[i] = Stored
	}
	return c
}

// refill gives a partition one more batch.
func refill(p *partition, number int64, values []string) {
	rs := recordsOf(number*int64(len(values)), values...)
	p.batches = make(chan []*kgo.Record, 1)
	p.batches <- rs
	close(p.batches)
}

//nolint:paralleltest // it measures what is the whole process's
func TestCarry_CostOfADecision(t *testing.T) {
	const n, most, mostBytes = 2000, 0.02, 4 // per decision; without the records of the fetch
	w, p := newWorld(), newPartition(t)
	w.pipe.cfg.BatchBytes = 1 << 30
	w.pipe.db = newCounting(n)
	values := good(named(n)...)
	batch := int64(0)
	made, madeBytes := costs(func() { refill(p, batch, values) })
	carry := func() {
		batch++
		refill(p, batch, values)
		if err := w.pipe.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	carry() // memory grows to what a batch needs
	all, allBytes := costs(carry)
	if each := (all - made) / n; each > most {
		t.Errorf("%.2f allocations for each decision, want %v at most", each, most)
	}
	if each := float64(allBytes-madeBytes) / n; each > mostBytes {
		t.Errorf("%.1f bytes for each decision, want %d at most", each, mostBytes)
	}
	if p.last() != (batch+1)*n {
		t.Errorf("committed %d of %d", p.last(), (batch+1)*n)
	}
}

// costs returns the allocations of f, in number and bytes, on average.
func costs(f func()) (allocs float64, bytes int64) {
	const runs = 5
	var from, to runtime.MemStats
	for range 3 { // pooled memory doubles until a batch fits in one piece
		f()
	}
	runtime.ReadMemStats(&from)
	allocs = testing.AllocsPerRun(runs-1, f) // it calls f once more before it counts
	runtime.ReadMemStats(&to)
	return allocs, int64(to.TotalAlloc-from.TotalAlloc) / runs
}

// TestScratch_NotUsedAgainAfterAFailedWrite has a Store that still reads its rows after it returned an error.
func TestScratch_NotUsedAgainAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kept [][]Row
		s := &keeper{keep: func(rows []Row) error {
			if kept = append(kept, rows); len(kept) == 1 {
				return sqlstate("08006")
			}
			return nil
		}}
		w := newWorld()
		w.pipe.db = s
		p := newPartition(t, recordsOf(0, good("a", "b")...), recordsOf(2, good("c", "d")...), recordsOf(4, good("e", "f")...))
		w.run(t, p)
		if got := fmt.Sprintf("%s%s%d", kept[0][0].Log.ID, kept[0][1].Log.ID, kept[0][1].Offset); got != "ab1" {
			t.Errorf("the rows of the failed write read %q now", got)
		}
	})
}

// keeper is a Store that calls keep in every write.
type keeper struct{ keep func(rows []Row) error }

func (k *keeper) Store(_ context.Context, rows []Row, _ bool) ([]Outcome, error) {
	if err := k.keep(rows); err != nil {
		return nil, err
	}
	return newCounting(len(rows)).out, nil
}
func (k *keeper) Foresee(context.Context, []Row, string) ([]int, error) { return nil, nil }
func (k *keeper) Refusals(_ context.Context, rows []Row, _ time.Time) ([]error, error) {
	return make([]error, len(rows)), nil
}

func (k *keeper) Probe(context.Context, time.Time) error { return nil }

// TestScratch_ForwardedRecordsDoNotUseIt reads forwarded records after many more batches used the same scratch.
func TestScratch_ForwardedRecordsDoNotUseIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var batches [][]*kgo.Record
		for b := range 20 {
			batches = append(batches, recordsOf(int64(3*b), append(good(fmt.Sprint("a", b)), fmt.Sprintf("{broken %d", b), "["+logOf(fmt.Sprint("b", b))+","+fmt.Sprint(b)+"]")...))
		}
		w, p := newWorld(), newPartition(t, batches...)
		w.run(t, p)
		for b := range 20 {
			for i, want := range []string{fmt.Sprintf("{broken %d", b), fmt.Sprint(b)} {
				if got := w.kafka.took[2*b+i]; string(got.Value) != want || told(got) == "" || string(got.Key) != "k" {
					t.Errorf("dead letter %d of batch %d is %q, want %q", i, b, got.Value, want)
				}
			}
		}
		if p.last() != 60 {
			t.Errorf("committed %d", p.last())
		}
	})
}

// TestRelease_NotAfterAFailedWrite has a Store that fails once, in the second of three batches.
func TestRelease_NotAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		s := &keeper{keep: func([]Row) error {
			if writes++; writes == 2 {
				return sqlstate("08006")
			}
			return nil
		}}
		w := newWorld()
		w.pipe.db = s
		batches := [][]*kgo.Record{recordsOf(0, good("a", "b")...), recordsOf(2, good("c", "d")...), recordsOf(4, good("e", "f")...)}
		p := newPartition(t, batches...)
		w.run(t, p)
		for i, want := range []bool{true, false, true} {
			if released := batches[i][0] == nil && batches[i][1] == nil; released != want {
				t.Errorf("batch %d: released %v, want %v", i, released, want)
			}
		}
		if p.last() != 6 {
			t.Errorf("committed %d", p.last())
		}
	})
}

// TestRelease_NotAfterAFailedPublication has three batches with a broken record each. In the second the broker fails
// once, so that the publisher may still read its records.
func TestRelease_NotAfterAFailedPublication(t *testing.T) {
	t.Parallel()
	for _, said := range []error{errors.New("no answer"), kerr.MessageTooLarge} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			failed := false
			w.kafka.fail = func(r *kgo.Record) error {
				if string(r.Value) == "{d" && !failed {
					failed = true
					return said
				}
				return nil
			}
			var batches [][]*kgo.Record
			for i, broken := range []string{"{b", "{d", "{f"} {
				batches = append(batches, recordsOf(int64(2*i), good(fmt.Sprint("a", i))[0], broken))
			}
			p := newPartition(t, batches...)
			w.run(t, p)
			for i, want := range []bool{true, false, true} {
				if released := batches[i][0] == nil && batches[i][1] == nil; released != want {
					t.Errorf("%v: batch %d: released %v, want %v", said, i, released, want)
				}
			}
			if p.last() != 6 || len(w.kafka.took)+len(w.spool.lines) != 3 {
				t.Errorf("%v: committed %d, %d published, %d spooled", said, p.last(), len(w.kafka.took), len(w.spool.lines))
			}
		})
	}
}
