package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLeaving_EndsPausesAndHoldsUncommitted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code  string
		after time.Duration
	}{
		"in the first pause":  {"08006", 500 * time.Millisecond},
		"in the second pause": {"08006", 2 * time.Second},
		"in a hold":           {"42P01", 90 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, p := newWorld(), newPartition(t, recordsOf(0, append(good("a"), "bad")...), recordsOf(2, good("b")...))
				w.db.away = func() error { return sqlstate(tc.code) }
				time.AfterFunc(tc.after, p.depart)
				if took := w.run(t, p); took != tc.after {
					t.Errorf("took %v, want %v", took, tc.after)
				}
				if p.last() != -1 || len(w.kafka.took) != 0 || w.told.given != 2 {
					t.Errorf("committed %d, published %d, given back %d", p.last(), len(w.kafka.took), w.told.given)
				}
			})
		})
	}
}

func TestLeaving_FinishesTheBatchInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, append(good("a", "x"), "bad")...), recordsOf(3, good("b")...))
		w.db.hook = func(context.Context) { p.depart() }
		w.db.refuse = func(id string) error {
			if id == "x" {
				return sqlstate("23514")
			}
			return nil
		}
		w.run(t, p)
		if p.last() != 3 || len(w.kafka.sent("dlq")) != 2 || w.db.has("b") {
			t.Errorf("committed %d, dead letters %v", p.last(), w.kafka.sent("dlq"))
		}
	})
}

func TestStopped_CancelledWorkIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, append(good("a"), "bad")...))
		ctx, cancel := context.WithCancel(t.Context())
		w.db.hook = func(context.Context) { cancel() }
		if err := w.pipe.Run(ctx, p); err != nil {
			t.Errorf("Run: %v", err)
		}
		if p.last() != -1 || len(w.kafka.took) != 0 || len(w.spool.lines) != 0 || w.told.given != 2 {
			t.Errorf("committed %d, published %d, spooled %d, given back %d", p.last(), len(w.kafka.took), len(w.spool.lines), w.told.given)
		}
	})
}

func TestWedged_StuckBatchNotAHeldOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		stuck := make(chan struct{})
		w.db.hook = func(context.Context) { <-stuck }
		done := make(chan struct{})
		go func() { defer close(done); w.run(t, p) }()
		synctest.Wait()
		if w.pipe.Idle() || w.pipe.Wedged(time.Minute) != nil {
			t.Error("a batch that was just picked up is idle or wedged")
		}
		time.Sleep(2 * time.Minute)
		if !errors.Is(w.pipe.Wedged(time.Minute), ErrWedged) {
			t.Error("a batch without progress for two minutes is not wedged")
		}
		close(stuck)
		<-done

		w, p = newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.db.away = func() error { return sqlstate("42P01") }
		done = make(chan struct{})
		go func() { defer close(done); w.run(t, p) }()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if err := w.pipe.Wedged(time.Second / 2); err != nil {
			t.Errorf("a hold is %v", err)
		}
		p.depart()
		<-done
	})
}

func TestWedged_NotWhileACommitWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		p.waiting = make(chan struct{})
		done := make(chan struct{})
		go func() { defer close(done); w.run(t, p) }()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if h := w.told.homes(); h["row"] != 1 || p.last() != -1 {
			t.Fatalf("homes %v, committed %d: the commit is not what is waited for", h, p.last())
		}
		if err := w.pipe.Wedged(time.Minute); err != nil {
			t.Errorf("a commit that the brokers do not take yet: %v", err)
		}
		close(p.waiting)
		<-done
		if p.last() != 1 {
			t.Errorf("committed %d", p.last())
		}
	})
}
