package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/lanes"
	"docket/internal/record/home"
)

// shelf is a slow Store that takes many writes at once, unlike [table]. Each partition has a func for its writes.
type shelf struct {
	write func(ctx context.Context, partition int32) error
	probe func() error

	now, most, writes atomic.Int64
}

func (s *shelf) Foresee(context.Context, []Row, string) ([]int, error) { return nil, nil }
func (s *shelf) Refusals(_ context.Context, rows []Row, _ time.Time) ([]error, error) {
	return make([]error, len(rows)), nil
}

func (s *shelf) Store(ctx context.Context, rows []Row, _ bool) ([]Outcome, error) {
	s.writes.Add(1)
	defer s.now.Add(-1)
	for n := s.now.Add(1); ; {
		if most := s.most.Load(); n <= most || s.most.CompareAndSwap(most, n) {
			break
		}
	}
	if err := s.write(ctx, rows[0].Partition); err != nil {
		return nil, err
	}
	out := make([]Outcome, len(rows))
	for i := range out {
		out[i] = Stored
	}
	return out, nil
}

func (s *shelf) Probe(context.Context, time.Time) error {
	if s.probe == nil {
		return nil
	}
	return s.probe()
}

// numbered is a partition other than 0.
type numbered struct {
	*partition
	number int32
}

func (n numbered) Partition() int32 { return n.number }

func several(t *testing.T, partitions int32, batches int) []numbered {
	var all []numbered
	for number := range partitions {
		p := numbered{newPartition(t), number}
		p.account = home.NewAccount("decision-logs", number)
		p.batches = make(chan []*kgo.Record, batches)
		for b := range batches {
			rs := recordsOf(int64(2*b), good(fmt.Sprint("p", number, "b", b), "x")...)
			for _, r := range rs {
				r.Partition = number
			}
			p.batches <- rs
		}
		close(p.batches)
		all = append(all, p)
	}
	return all
}

// pass is a write that takes d.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// crowd starts a Run for each partition, with this many turns.
func crowd(t *testing.T, turns int, s *shelf, all []numbered) (w *world, took []time.Duration) {
	t.Helper()
	w = newWorld(func(w *world) { w.config.Turns = lanes.New(lanes.Alone(turns)) })
	w.pipe.db = s
	from := time.Now()
	took = make([]time.Duration, len(all))
	var running sync.WaitGroup
	for i, p := range all {
		running.Go(func() {
			if err := w.pipe.Run(t.Context(), p); err != nil {
				t.Errorf("partition %d: %v", i, err)
			}
			took[i] = time.Since(from)
		})
	}
	running.Wait()
	w.settledAccount(t)
	if n, _ := w.config.Turns.Count(lanes.Default); n != 0 {
		t.Errorf("%d turns were never given back", n)
	}
	return w, took
}

func TestTurn_LimitsBatchesInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{write: func(ctx context.Context, _ int32) error { return pass(ctx, time.Second) }}
		all := several(t, 8, 5)
		_, took := crowd(t, 2, s, all)
		if s.most.Load() != 2 || s.writes.Load() != 40 {
			t.Errorf("%d writes, %d at a time, want 40, 2 at a time", s.writes.Load(), s.most.Load())
		}
		for i, p := range all {
			if p.last() != 10 || took[i] > 20*time.Second || took[i] < 17*time.Second {
				t.Errorf("partition %d: committed %d after %v, want them to take turns", i, p.last(), took[i])
			}
		}
	})
}

func TestTurn_FreeWhileAPartitionWaits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refuse, probe string
		commit        time.Duration
	}{
		"in a hold":                          {"42P01", "42P01", 0},
		"in a pause between tries":           {"08006", "08006", 0},
		"for a commit the brokers leave out": {"", "", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				from := time.Now()
				ill := func() bool { return time.Since(from) < time.Hour }
				s := &shelf{write: func(ctx context.Context, partition int32) error {
					if partition == 0 && tc.refuse != "" && ill() {
						return sqlstate(tc.refuse)
					}
					return pass(ctx, 10*time.Millisecond)
				}, probe: func() error {
					if tc.probe != "" && ill() {
						return sqlstate(tc.probe)
					}
					return nil
				}}
				all := several(t, 4, 5)
				if tc.commit > 0 {
					all[0].waiting = make(chan struct{})
					time.AfterFunc(tc.commit, func() { close(all[0].waiting) })
				}
				w, took := crowd(t, 1, s, all)
				for i, p := range all {
					if p.last() != 10 || i > 0 && took[i] > time.Second {
						t.Errorf("partition %d: committed %d after %v", i, p.last(), took[i])
					}
				}
				if name == "in a hold" && len(w.told.held) == 0 {
					t.Error("nothing was held")
				}
			})
		})
	}
}

func TestTurn_NotAwaitedWhenLeaving(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]bool{"before its batch": false, "with a batch that is owed one more try": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				all := several(t, 2, 1)
				var tries atomic.Int64
				busy := make(chan struct{}) // closed when partition 0 has the turn
				s := &shelf{write: func(ctx context.Context, partition int32) error {
					switch {
					case partition == 0:
						close(busy)
						return pass(ctx, time.Hour)
					case tries.Add(1) == 1:
						return sqlstate("08006")
					}
					return nil
				}}
				first := all[0].batches
				all[0].batches = make(chan []*kgo.Record, 1)
				go func() {
					if failing { // partition 1 comes first, and pauses
						time.Sleep(100 * time.Millisecond)
					}
					all[0].batches <- <-first
					close(all[0].batches)
				}()
				if !failing {
					second := all[1].batches
					all[1].batches = make(chan []*kgo.Record, 1)
					go func() {
						<-busy
						all[1].batches <- <-second
						close(all[1].batches)
					}()
				}
				time.AfterFunc(500*time.Millisecond, all[1].depart)
				_, took := crowd(t, 1, s, all)
				want := int64(-1)
				if failing {
					want = 2
				}
				if took[1] != 500*time.Millisecond || all[1].last() != want || all[0].last() != 2 {
					t.Errorf("left after %v, committed %d, want %d; the other one %d", took[1], all[1].last(), want, all[0].last())
				}
			})
		})
	}
}

func TestTurn_FreeAfterAnEmptyFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{write: func(ctx context.Context, _ int32) error { return pass(ctx, time.Second) }}
		all := several(t, 2, 1)
		all[0].batches = make(chan []*kgo.Record, 1)
		all[0].batches <- recordsOf(0) // as after a clock that was set back
		time.AfterFunc(time.Hour, func() { close(all[0].batches) })
		second := all[1].batches
		all[1].batches = make(chan []*kgo.Record, 1)
		time.AfterFunc(time.Second, func() {
			all[1].batches <- <-second
			close(all[1].batches)
		})
		if _, took := crowd(t, 1, s, all); took[1] != 2*time.Second {
			t.Errorf("the other partition took %v", took[1])
		}
	})
}

func TestTurn_WaitIsNotTimeOfARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		s := &shelf{write: func(ctx context.Context, partition int32) error {
			switch {
			case partition == 1:
				return pass(ctx, time.Hour)
			case tries.Add(1) == 1:
				return sqlstate("42P01")
			}
			return pass(ctx, 2*time.Millisecond)
		}}
		probes := 0
		s.probe = func() error {
			if probes++; probes == 1 {
				return sqlstate("42P01") // a hold, in which the other partition takes the turn
			}
			return nil
		}
		all := several(t, 2, 1)
		second := all[1].batches
		all[1].batches = make(chan []*kgo.Record, 1)
		time.AfterFunc(time.Millisecond, func() {
			all[1].batches <- (<-second)[:1] // too few for a measurement
			close(all[1].batches)
		})
		w := newWorld(func(w *world) { w.config.Turns = lanes.New(lanes.Alone(1)) })
		w.pipe.db = s
		w.pipe.portion.most = 2
		var running sync.WaitGroup
		for _, p := range all {
			running.Go(func() {
				if err := w.pipe.Run(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		if pace := time.Duration(w.pipe.portion.pace); pace != time.Millisecond {
			t.Errorf("a row took %v, want 1ms", pace)
		}
	})
}
