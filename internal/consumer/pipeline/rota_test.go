package pipeline

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

const probeTakes = 10 * time.Millisecond

// tableless is a database without the table until created. It notes the times of probes.
type tableless struct {
	mu      sync.Mutex
	created time.Time
	probes  []time.Time
}

func (r *tableless) fails() error {
	if time.Now().Before(r.created) {
		return sqlstate("42P01")
	}
	return nil
}

func (r *tableless) probe() error {
	r.mu.Lock()
	r.probes = append(r.probes, time.Now())
	r.mu.Unlock()
	time.Sleep(probeTakes)
	return r.fails()
}

// TestRota_OneProbeForAll has 200 partitions before a table that is missing for ten minutes.
func TestRota_OneProbeForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const partitions = 200
		began := time.Now()
		db := &tableless{created: began.Add(10*time.Minute + time.Millisecond)}
		w := newWorld()
		p := New(w.config, &shelf{write: func(context.Context, int32) error { return db.fails() }, probe: db.probe}, w.kafka, w.spool, w.told, zerolog.Nop())
		runAll(t, p, several(t, partitions, 1))
		if late := time.Since(db.created); late > w.config.ProbeInterval {
			t.Errorf("the last row came %v after the table, an interval is %v", late, w.config.ProbeInterval)
		}
		if h := w.told.homes(); h["row"] != 2*partitions || len(h) > 1 {
			t.Errorf("homes %v", h)
		}
		var during []time.Time
		for _, at := range db.probes {
			if at.After(began.Add(w.config.ProbeInterval)) { // each probed once before it held
				during = append(during, at)
			}
		}
		if n := most(during, w.config.ProbeInterval); n != 1 {
			t.Errorf("%d probes in an interval", n)
		}
		if want := int(10*time.Minute/(w.config.ProbeInterval+probeTakes)) - 1; len(during) < want {
			t.Errorf("%d probes in ten minutes, want %d", len(during), want)
		}
	})
}

// hold waits as a partition does, and returns when the hold is over or ctx ends. probe is its own.
func (r *rota) hold(ctx context.Context, at time.Time, h Hold, interval time.Duration, probe func() probed) (last Hold) {
	for {
		answer, ok := r.wait(ctx, ctx, at, h, interval)
		if ctx.Err() != nil {
			return h
		}
		if !ok {
			began := r.begin()
			answer = probe()
			r.tell(at, began, answer, interval)
		}
		if h = answer.hold; answer.over {
			return h
		}
	}
}

var (
	noTable = Hold{Reason: ReasonDatabaseRefuses, Code: "42P01"}
	noGrant = Hold{Reason: ReasonDatabaseRefuses, Code: "42501"}
)

// TestRota_AnswerOfAnEarlierProbe has a probe that waits for a standby, and comes back with what was so before the table was
// dropped. It does not end a hold that began meanwhile.
func TestRota_AnswerOfAnEarlierProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r rota
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		at := time.Now()
		probing, dropped := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			r.hold(ctx, at, noGrant, time.Second, func() probed {
				close(probing)
				<-dropped
				return probed{hold: noGrant, over: true}
			})
		})
		<-probing
		probes := 0
		all.Go(func() {
			r.hold(ctx, at, noTable, time.Second, func() probed {
				probes++
				return probed{hold: noTable, over: true}
			})
		})
		synctest.Wait()
		close(dropped)
		all.Wait()
		if probes != 1 {
			t.Errorf("the later hold ended after %d probes of its own", probes)
		}
	})
}

// TestRota_HoursAreApart has a table without partitions for one of two hours.
func TestRota_HoursAreApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r rota
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		first := time.Date(2026, 1, 31, 22, 59, 59, 0, time.UTC)
		var ended sync.Map
		var all sync.WaitGroup
		for i := range 20 {
			at := first.Add(time.Duration(i%2) * time.Second)
			all.Go(func() {
				r.hold(ctx, at, noTable, time.Second, func() probed { return probed{hold: noTable, over: at.Equal(first)} })
				ended.Store(i, ctx.Err() == nil)
			})
		}
		all.Wait()
		for i := range 20 {
			if over, _ := ended.Load(i); over != (i%2 == 0) {
				t.Errorf("partition %d: over %v", i, over)
			}
		}
		if len(r.of) != 0 {
			t.Errorf("%d hours are kept", len(r.of))
		}
	})
}

// TestRota_EachHasItsPlace has 20 partitions of one hour. The table takes a good row at the time of the last one only.
func TestRota_EachHasItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r rota
		const partitions = 20
		began := time.Now()
		asked := make([]int, partitions)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range partitions {
			all.Go(func() {
				r.hold(t.Context(), began, noTable, time.Second, func() probed {
					mu.Lock()
					defer mu.Unlock()
					asked[i]++
					return probed{hold: noTable, over: i == partitions-1 && asked[i] == 2}
				})
			})
			synctest.Wait()
		}
		all.Wait()
		for i, n := range asked {
			if n != 2 {
				t.Errorf("partition %d probed %d times, want each once before any one probes again", i, n)
			}
		}
		if took := time.Since(began); took != 2*partitions*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestRota_AllHearANewReason has a refusal that changes. Each partition has to report it.
func TestRota_AllHearANewReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r rota
		changes := time.Now().Add(time.Minute)
		ctx, stop := context.WithDeadline(t.Context(), changes.Add(time.Second))
		defer stop()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				last := r.hold(ctx, changes, noTable, time.Second, func() probed {
					if time.Now().Before(changes) {
						return probed{hold: noTable}
					}
					return probed{hold: noGrant}
				})
				if last != noGrant {
					t.Errorf("a second after the change it holds for %v", last)
				}
			})
		}
		all.Wait()
	})
}

// TestRota_NobodyIsWaitedFor has a first partition whose probe hangs, or that is given up.
func TestRota_NobodyIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var r rota
			began := time.Now()
			gone, leave := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() {
				r.hold(gone, began, noTable, time.Second, func() probed {
					time.Sleep(time.Minute)
					return probed{over: true}
				})
			})
			synctest.Wait()
			if !hangs {
				leave()
			}
			all.Go(func() {
				r.hold(t.Context(), began, noTable, time.Second, func() probed { return probed{over: true} })
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("hangs %t: the second one probed after %v", hangs, took)
				}
			})
			all.Wait()
			leave()
		})
	}
}
