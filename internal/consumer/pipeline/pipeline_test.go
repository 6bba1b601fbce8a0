package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/errclass"
	"docket/internal/record/home"
)

// run carries all batches of p and returns how long it took in virtual time.
func (w *world) run(t *testing.T, p *partition) time.Duration {
	t.Helper()
	from := time.Now()
	if err := w.pipe.Run(t.Context(), p); err != nil {
		t.Errorf("Run: %v", err)
	}
	w.settledAccount(t)
	return time.Since(from)
}

func TestCarry_GoodBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(5, good("a", "b")...), recordsOf(9, good("c", "a")...))
		w.run(t, p)
		if p.last() != 11 || !w.db.has("a") || !w.db.has("b") || !w.db.has("c") {
			t.Errorf("committed %d, table %v", p.last(), w.db.rows)
		}
		if h := w.told.homes(); h["row"] != 3 || h["duplicate"] != 1 {
			t.Errorf("homes %v", h)
		}
		if len(w.db.writes) != 2 || len(w.kafka.took) != 0 {
			t.Errorf("writes %v, published %d", w.db.writes, len(w.kafka.took))
		}
	})
}

func TestBatchBytes_UnsetIsNoLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(func(w *world) { w.config.BatchBytes = limit }), newPartition(t, recordsOf(0, good("a", "b")...))
			w.run(t, p)
			if p.last() != 2 || len(w.db.writes) != 1 || !w.db.has("a") || !w.db.has("b") {
				t.Errorf("limit %d: committed %d, writes %v", limit, p.last(), w.db.writes)
			}
		})
	}
}

func TestRetry_AfterOneAndTwoSeconds(t *testing.T) {
	t.Parallel()
	for name, failures := range map[string]int{"once": 1, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "b")...))
				left := failures
				w.db.away = func() error {
					if left--; left >= 0 {
						return sqlstate("08006")
					}
					return nil
				}
				took := w.run(t, p)
				if want := []time.Duration{0, time.Second, 3 * time.Second}[failures]; took != want {
					t.Errorf("took %v, want %v", took, want)
				}
				if want := []bool{false, true, true}[:failures+1]; !slices.Equal(w.db.fresh, want) {
					t.Errorf("fresh connections %v, want %v", w.db.fresh, want)
				}
				if h := w.told.homes(); h["row"] != 2 || w.told.retries != failures || w.db.probes != 0 {
					t.Errorf("homes %v, retries %d, probes %d", h, w.told.retries, w.db.probes)
				}
			})
		})
	}
}

func TestOutage_ParksThreeBatchesThenHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := newPartition(t, recordsOf(0, append(good("a"), "{bad")...), recordsOf(2, good("b")...), recordsOf(3, good("c")...), recordsOf(4, good("d", "e")...))
		back := time.Now().Add(10 * time.Minute)
		w.db.away = func() error {
			if time.Now().Before(back) {
				return sqlstate("57P03")
			}
			return nil
		}
		took := w.run(t, p)
		equal(t, "parked", w.kafka.sent("parking"), []string{"0/0 transient 57P03 0", "2/0 transient 57P03 0", "3/0 transient 57P03 0"})
		equal(t, "dead letters", w.kafka.sent("dlq"), []string{"1/ decode syntax 0"})
		equal(t, "held", w.told.held, []string{"database_away 57P03"})
		if h := w.told.homes(); h["row"] != 2 || h["parked"] != 3 || !w.db.has("e") {
			t.Errorf("homes %v", h)
		}
		if took > 10*time.Minute+2*time.Second || p.last() != 6 || p.holds != 0 {
			t.Errorf("took %v, committed %d, holds left %d", took, p.last(), p.holds)
		}
	})
}

func TestAway_NothingIsParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.pipe.Away(true)
		back := time.Now().Add(time.Hour)
		w.db.away = func() error {
			if time.Now().Before(back) {
				return sqlstate("08006")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"database_away 08006"})
		if h := w.told.homes(); h["row"] != 1 || len(w.kafka.took) != 0 {
			t.Errorf("homes %v", h)
		}
		w.pipe.Away(true)
		w.pipe.Away(false)
		w.db.away = func() error { return sqlstate("08006") }
		w.run(t, newPartition(t, recordsOf(0, good("b")...)))
		if h := w.told.homes(); h["parked"] != 1 {
			t.Errorf("homes %v", h)
		}
	})
}

func TestBreaker_ResetWhenAHoldEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ParkBatches = 1 })
		p := newPartition(t, recordsOf(0, good("a")...), recordsOf(1, good("b")...))
		w.db.refuse = func(string) error { return sqlstate("40001") } // and the probe is taken
		if took := w.run(t, p); took > time.Minute {
			t.Errorf("stood still for %v on a database that answers the probe", took)
		}
		equal(t, "held", w.told.held, []string{"database_away 40001"})
		if n := len(w.kafka.sent("parking")); n != 2 || p.last() != 2 {
			t.Errorf("parked %d, committed %d", n, p.last())
		}
	})
}

func TestBreaker_ZeroNeverHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ParkBatches = 0 })
		p := newPartition(t, recordsOf(0, good("a")...), recordsOf(1, good("b")...), recordsOf(2, good("c")...), recordsOf(3, good("d")...), recordsOf(4, good("e")...))
		w.db.away = func() error { return sqlstate("08006") }
		w.run(t, p)
		if n := len(w.kafka.sent("parking")); n != 5 || len(w.told.held) != 0 || p.last() != 5 {
			t.Errorf("parked %d, held %v, committed %d", n, w.told.held, p.last())
		}
	})
}

func TestBreaker_StoredBatchResetsTheCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ParkBatches = 1 })
		p := newPartition(t, recordsOf(0, good("x1")...), recordsOf(1, good("a")...), recordsOf(2, good("x2")...))
		w.db.refuse = func(id string) error {
			if id[0] == 'x' {
				return sqlstate("53300")
			}
			return nil
		}
		w.run(t, p)
		if n := len(w.kafka.sent("parking")); n != 2 || len(w.told.held) != 0 {
			t.Errorf("parked %d, held %v", n, w.told.held)
		}
	})
}

func TestReadOnly_HoldsAndIsNeverParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a", "b")...))
		back := time.Now().Add(time.Minute)
		w.db.away = func() error {
			if time.Now().Before(back) {
				return sqlstate("25006")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"read_only 25006"})
		if h := w.told.homes(); h["row"] != 2 || len(w.kafka.took) != 0 || !w.db.fresh[1] {
			t.Errorf("homes %v, published %d, fresh %v", h, len(w.kafka.took), w.db.fresh)
		}
	})
}

func TestRetry_HalvesATooLargeBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good(named(8)...)...))
		w.db.hook = func(context.Context) {
			size := len(w.db.writes[len(w.db.writes)-1])
			w.db.away = func() error {
				if size > 2 {
					return sqlstate("53200")
				}
				return nil
			}
		}
		w.run(t, p)
		if h := w.told.homes(); h["row"] != 8 {
			t.Errorf("homes %v after writes %v", h, w.db.writes)
		}
	})
}

func TestIdle_WhileAllBatchesHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.db.away = func() error { return sqlstate("42P01") }
		done := make(chan struct{})
		go func() { defer close(done); w.run(t, p) }()
		time.Sleep(time.Hour + time.Second/2)
		synctest.Wait()
		if w.told.holding[ReasonDatabaseRefuses] != 1 || !w.pipe.Idle() {
			t.Errorf("holds %v, idle %v", w.told.holding, w.pipe.Idle())
		}
		p.depart()
		<-done
	})
}

func TestCodeForHeader_PromisedCodes(t *testing.T) {
	t.Parallel()
	promised := strings.Fields("network timeout id_conflict too_slow internal panic empty syntax duplicate_key missing_field wrong_type out_of_range too_large")
	for _, v := range errclass.Table() {
		if strings.ToLower(v.Code) != v.Code || len(v.Code) == 5 || v.Class == errclass.OK || v.Class == errclass.Cancelled {
			continue
		}
		for _, replay := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(func(w *world) { w.config.Replay = replay }), newPartition(t, recordsOf(0, good("a", "x")...))
				w.db.refuse = func(id string) error {
					if id == "x" {
						return errclass.As(errors.New("planted"), v.Code)
					}
					return nil
				}
				w.run(t, p)
				if len(w.kafka.took) == 0 {
					t.Errorf("%s, replay %v: nothing was forwarded", v.Code, replay)
				}
				for _, r := range w.kafka.took {
					if code := headerOf(r, "x-failure-code"); !slices.Contains(promised, code) {
						t.Errorf("%s, replay %v: x-failure-code is %q", v.Code, replay, code)
					}
				}
			})
		}
	}
}

func TestBackoff_DoublesUpToItsMaximum(t *testing.T) {
	t.Parallel()
	w := newWorld()
	want := []int{1, 2, 4, 8, 16, 32, 60, 60}
	for attempt, minutes := range want {
		if got := w.pipe.backoff(attempt); got != time.Duration(minutes)*time.Minute {
			t.Errorf("attempt %d: %v, want %v min", attempt, got, minutes)
		}
	}
	if got := w.pipe.backoff(1 << 30); got != time.Hour {
		t.Errorf("attempt 2^30: %v", got)
	}
}

func TestRun_ErrorOfTheFetch(t *testing.T) {
	t.Parallel()
	w := newWorld()
	want := errors.New("no such partition")
	if err := w.pipe.Run(t.Context(), &failing{newPartition(t, recordsOf(0, good("a")...)), want}); !errors.Is(err, want) {
		t.Errorf("Run: %v", err)
	}
}

type failing struct {
	*partition
	err error
}

func (f *failing) Fetch(context.Context) (*home.Batch, error) { return nil, f.err }
