package claims_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/claims"
)

// task is work that takes a while. Its result is there once it is done.
type task struct {
	takes   time.Duration
	began   atomic.Int64
	stopped atomic.Int64
	done    atomic.Bool
}

func (w *task) known() bool { return w.done.Load() }

func (w *task) work(ctx context.Context) error {
	w.began.Add(1)
	select {
	case <-time.After(w.takes):
		w.done.Store(true)
		return nil
	case <-ctx.Done():
		w.stopped.Add(1)
		return ctx.Err()
	}
}

// never is the result of a process that keeps it for itself.
func never() bool { return false }

func TestOnce_ManyProcessesOneWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port, w := &claims.Memory{}, &task{takes: time.Minute}
		var all sync.WaitGroup
		for range 100 {
			once := claims.NewOnce(port)
			all.Go(func() {
				if err := once.Do(t.Context(), "k", claims.High, w.known, w.work); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := w.began.Load(); n != 1 {
			t.Errorf("the work began %d times", n)
		}
	})
}

func TestOnce_HighTakesOverAndLowStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port, low, high := &claims.Memory{}, &task{takes: time.Hour}, &task{takes: 10 * time.Second}
		var all sync.WaitGroup
		all.Go(func() {
			if err := claims.NewOnce(port).Do(t.Context(), "k", claims.Low, low.known, low.work); !errors.Is(err, claims.ErrTaken) {
				t.Errorf("the work of low priority ended with %v", err)
			}
		})
		synctest.Wait()
		began := time.Now()
		if err := claims.NewOnce(port).Do(t.Context(), "k", claims.High, high.known, high.work); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the work of high priority waited: it took %v", took)
		}
		if low.stopped.Load() != 1 || low.done.Load() {
			t.Error("the work of low priority was not stopped")
		}
		all.Wait()
	})
}

func TestOnce_LowDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port, w := &claims.Memory{}, &task{takes: time.Minute}
		if v, _ := port.Begin(t.Context(), "k", claims.Low, time.Minute); v == 0 {
			t.Fatal("no claim")
		}
		if err := claims.NewOnce(port).Do(t.Context(), "k", claims.Low, w.known, w.work); !errors.Is(err, claims.ErrTaken) || w.began.Load() != 0 {
			t.Errorf("%v, begun %d times", err, w.began.Load())
		}
	})
}

func TestOnce_TryHoldsUntilReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port := &claims.Memory{}
		one, other := claims.NewOnce(port), claims.NewOnce(port)
		working, release, ok := one.Try(t.Context(), "k", claims.Low)
		time.Sleep(time.Minute)
		if _, _, again := other.Try(t.Context(), "k", claims.Low); !ok || again || working.Err() != nil {
			t.Fatalf("held %v, and by another %v: %v", ok, again, working.Err())
		}
		_, end, ok := other.Try(t.Context(), "k", claims.High)
		<-working.Done()
		if !ok || !errors.Is(context.Cause(working), claims.ErrTaken) {
			t.Errorf("taken over %v: %v", ok, context.Cause(working))
		}
		release() // it is late, and ends nothing
		if _, _, again := one.Try(t.Context(), "k", claims.High); again {
			t.Error("a late release ended the claim of another")
		}
		end()
		if _, release, ok = one.Try(t.Context(), "k", claims.Low); !ok {
			t.Error("the claim was not ended")
		}
		release()
		if _, _, ok := claims.NewOnce(&failing{err: errors.New("away")}).Try(t.Context(), "k", claims.Low); !ok {
			t.Error("no work without a port")
		}
	})
}

// A process that was killed ends no claim and keeps none.
func TestOnce_KilledProcessBlocksForItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port, w := &claims.Memory{}, &task{takes: time.Second}
		if v, _ := port.Begin(t.Context(), "k", claims.High, 5*time.Second); v == 0 {
			t.Fatal("no claim")
		}
		began := time.Now()
		if err := claims.NewOnce(port).Do(t.Context(), "k", claims.High, w.known, w.work); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 6*time.Second || took > 7*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A question with a deadline is answered in time, even if another process takes all of it, or keeps its result.
func TestOnce_WaitsForHalfOfItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port, w := &claims.Memory{}, &task{takes: time.Second}
		if v, _ := port.Begin(t.Context(), "k", claims.High, time.Hour); v == 0 {
			t.Fatal("no claim")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if err := claims.NewOnce(port).Do(ctx, "k", claims.High, never, w.work); err != nil || time.Since(began) != 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// remote is a port that a caller who gave up does not reach.
type remote struct{ claims.Memory }

func (r *remote) End(ctx context.Context, key string, version int64) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return r.Memory.End(ctx, key, version)
}

func TestOnce_CallerWhoGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port, w := &remote{}, &task{takes: time.Hour}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- claims.NewOnce(port).Do(ctx, "k", claims.High, w.known, w.work) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if v, _ := port.Begin(t.Context(), "k", claims.Low, time.Hour); v == 0 {
			t.Error("the claim was not ended")
		}
	})
}

// failing is a port that is away, and counts its calls.
type failing struct {
	calls atomic.Int64
	slow  bool
	err   error
}

func (f *failing) call(ctx context.Context) error {
	f.calls.Add(1)
	if f.slow {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.err
}

func (f *failing) Begin(ctx context.Context, _ string, _ claims.Priority, _ time.Duration) (int64, error) {
	return 0, f.call(ctx)
}

func (f *failing) Keep(ctx context.Context, _ string, _ int64, _ time.Duration) (bool, error) {
	return false, f.call(ctx)
}

func (f *failing) End(ctx context.Context, _ string, _ int64) (bool, error) {
	return false, f.call(ctx)
}

func TestOnce_FirstPortThatAnswers(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]*failing{"failing": {err: errors.New("away")}, "silent": {slow: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				port, w := &claims.Memory{}, &task{takes: time.Minute}
				var all sync.WaitGroup
				for range 10 {
					once := claims.NewOnce(away, port)
					all.Go(func() {
						if err := once.Do(t.Context(), "k", claims.High, w.known, w.work); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if n := w.began.Load(); n != 1 {
					t.Errorf("the work began %d times", n)
				}
			})
		})
	}
}

func TestOnce_WorksWithoutAPort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := &failing{err: errors.New("away")}
		for _, once := range []*claims.Once{claims.NewOnce(), claims.NewOnce(away)} {
			w := &task{takes: time.Second}
			for range 5 {
				if err := once.Do(t.Context(), "k", claims.High, never, w.work); err != nil {
					t.Fatal(err)
				}
			}
			if n := w.began.Load(); n != 5 {
				t.Errorf("the work began %d times", n)
			}
		}
		if n := away.calls.Load(); n != 1 {
			t.Errorf("a port that is away was asked %d times", n)
		}
	})
}

// A port that is away for a while costs neither the work nor the claim of others.
func TestOnce_PortIsAskedAgainLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away, w := &failing{err: errors.New("away")}, &task{}
		once := claims.NewOnce(away)
		for range 3 {
			if err := once.Do(t.Context(), "k", claims.High, never, w.work); err != nil {
				t.Fatal(err)
			}
			time.Sleep(31 * time.Second)
		}
		if n := away.calls.Load(); n != 3 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

// The error of the work is that of the caller, and the next one may work.
func TestOnce_FailedWorkIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		port, broken := &claims.Memory{}, errors.New("the archive is broken")
		fails := func(context.Context) error { return broken }
		w := &task{takes: time.Second}
		if err := claims.NewOnce(port).Do(t.Context(), "k", claims.High, never, fails); !errors.Is(err, broken) {
			t.Error(err)
		}
		began := time.Now()
		if err := claims.NewOnce(port).Do(t.Context(), "k", claims.High, w.known, w.work); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
