package pipeline

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/lanes"
)

// outage is a database that is away until back. It notes the times of probes and of rows.
type outage struct {
	mu           sync.Mutex
	back         time.Time
	probes, rows []time.Time
	took         time.Duration // of a probe
	away         error
}

func (o *outage) fails() error {
	if time.Now().Before(o.back) {
		return o.away
	}
	return nil
}

func (o *outage) probe() error {
	o.mu.Lock()
	o.probes = append(o.probes, time.Now())
	o.mu.Unlock()
	time.Sleep(o.took)
	return o.fails()
}

func (o *outage) write(context.Context, int32) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.fails(); err != nil {
		return err
	}
	o.rows = append(o.rows, time.Now())
	return nil
}

// most returns the largest number of times within a span.
func most(times []time.Time, span time.Duration) (n int) {
	for i := range times {
		k := i
		for k < len(times) && times[k].Sub(times[i]) < span {
			k++
		}
		n = max(n, k-i)
	}
	return n
}

// waitOut makes this many partitions wait until the outage is over.
func (o *outage) waitOut(t *testing.T, partitions int32) *watcher {
	t.Helper()
	w := newWorld(func(w *world) { w.config.Turns = lanes.New(lanes.Alone(4)) })
	p := New(w.config, &shelf{write: o.write, probe: o.probe}, w.kafka, w.spool, w.told, zerolog.Nop())
	p.Away(true)
	runAll(t, p, several(t, partitions, 2))
	return w.told
}

// runAll carries all batches of these partitions.
func runAll(t *testing.T, p *Pipeline, partitions []numbered) {
	t.Helper()
	var all sync.WaitGroup
	for _, part := range partitions {
		all.Go(func() {
			if err := p.Run(t.Context(), part); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestElection_FirstRowComesSoon(t *testing.T) {
	t.Parallel()
	const most1s = 6 // probes in a second, by all partitions together
	for _, partitions := range []int32{1, 2, 8, 40} {
		for _, code := range []string{"08006", "25006"} {
			for _, took := range []time.Duration{0, 10 * time.Millisecond, 150 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					o := &outage{back: time.Now().Add(61*time.Second + 7*time.Millisecond), took: took, away: sqlstate(code)}
					back, from := o.back, time.Now()
					o.waitOut(t, partitions)
					if len(o.rows) != 2*int(partitions) {
						t.Fatalf("%d writes", len(o.rows))
					}
					within := 200*time.Millisecond + 3*took
					if d := o.rows[0].Sub(back); d > within {
						t.Errorf("%d partitions, a probe takes %v: the first row came %v after the database, want %v at most", partitions, took, d, within)
					}
					if d := o.rows[len(o.rows)-1].Sub(back); d > within+took {
						t.Errorf("%d partitions, a probe takes %v: the last row came %v after the database", partitions, took, d)
					}
					var during []time.Time
					for _, at := range o.probes {
						if at.Before(back) && at.After(from.Add(5*time.Second)) { // each probed once before it held
							during = append(during, at)
						}
					}
					if n := most(during, time.Second); n > most1s {
						t.Errorf("%d partitions: %d probes in a second", partitions, n)
					}
					if len(during) < 56 {
						t.Errorf("%d partitions: %d probes in 56 s", partitions, len(during))
					}
				})
			}
		}
	}
}

// TestElection_HangingProbeBlocksNobody has a server that answers nothing for as long as a connection may take.
func TestElection_HangingProbeBlocksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &outage{back: time.Now().Add(time.Minute), took: 10 * time.Second, away: sqlstate("08006")}
		o.waitOut(t, 8)
		for i, at := range o.probes[1:8] {
			if d := at.Sub(o.probes[i]); d > time.Second {
				t.Errorf("look %d began %v after the one before", i+2, d)
			}
		}
	})
}

// TestElection_RefusalIsReportedByEachPartition has a server that is back without its table.
func TestElection_RefusalIsReportedByEachPartition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		back, mended := time.Now().Add(time.Minute), time.Now().Add(2*time.Minute)
		var mu sync.Mutex
		var probes []time.Time
		fails := func() error {
			switch now := time.Now(); {
			case now.Before(back):
				return sqlstate("08006")
			case now.Before(mended):
				return sqlstate("42P01")
			}
			return nil
		}
		w := newWorld()
		p := New(w.config, &shelf{write: func(context.Context, int32) error { return fails() }, probe: func() error {
			mu.Lock()
			defer mu.Unlock()
			probes = append(probes, time.Now())
			return fails()
		}}, w.kafka, w.spool, w.told, zerolog.Nop())
		p.Away(true)
		go func() {
			time.Sleep(time.Until(back) + time.Second)
			w.told.with(func() {
				if w.told.holding[ReasonDatabaseRefuses] != 3 || w.told.holding[ReasonDatabaseAway] != 0 {
					t.Errorf("a second after it answered they hold for %v", w.told.holding)
				}
			})
		}()
		var all sync.WaitGroup
		for _, part := range several(t, 3, 1) {
			all.Go(func() { _ = p.Run(t.Context(), part) })
		}
		all.Wait()
		var refused []time.Time
		for _, at := range probes {
			if at.After(back.Add(time.Second)) && at.Before(mended) {
				refused = append(refused, at)
			}
		}
		if n := most(refused, time.Second); n > 3 { // each partition probes for itself, an interval apart
			t.Errorf("%d probes in a second of a table that refuses", n)
		}
		if h := w.told.homes(); h["row"] != 3*2 {
			t.Errorf("homes %v", h)
		}
	})
}

func TestElection_EndsWithThePartition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ProbeInterval = time.Hour })
		w.db.away = func() error { return sqlstate("08006") }
		w.pipe.Away(true)
		part := newPartition(t, recordsOf(0, good("a")...))
		time.AfterFunc(time.Minute, part.depart)
		if took := w.run(t, part); took > time.Minute {
			t.Errorf("it left after %v", took)
		}
		if part.last() != -1 || len(w.kafka.took) > 0 {
			t.Errorf("committed %d, forwarded %d", part.last(), len(w.kafka.took))
		}
	})
}

func TestElection_WakesAtEachOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const interval = time.Minute
		var l election
		l.probed(true, interval) // while nobody waits
		for range 3 {
			l.wait(t.Context(), t.Context(), interval) // this one probes
			woken := make(chan time.Time)
			go func() {
				l.wait(t.Context(), t.Context(), interval)
				woken <- time.Now()
			}()
			synctest.Wait()
			found := time.Now()
			l.probed(true, interval)
			if at := <-woken; !at.Equal(found) {
				t.Fatalf("woken %v after the database was found", at.Sub(found))
			}
		}
	})
}
