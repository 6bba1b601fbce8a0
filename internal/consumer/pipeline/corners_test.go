package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestCarry_ErrorInALaterPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.BatchBytes = 1 }) // each record is a portion
		p := newPartition(t, recordsOf(0, good("a", "b", "c", "d")...), recordsOf(4, good("e")...))
		w.db.away = func() error {
			if len(w.db.writes) > 2 {
				return sqlstate("42P01")
			}
			return nil
		}
		time.AfterFunc(time.Hour, p.depart)
		if took := w.run(t, p); took != time.Hour {
			t.Errorf("took %v", took)
		}
		if p.last() != 2 || w.db.has("c") || w.db.has("d") || w.db.has("e") || w.told.given != 1 {
			t.Errorf("committed %d, %d rows, given back %d", p.last(), len(w.db.rows), w.told.given)
		}
	})
}

func TestSettle_FailingSpoolHoldsEveryKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, "huge", "large", "away", "small"))
		w.kafka.fail = func(r *kgoRecord) error {
			switch v := string(r.Value); {
			case v == "huge", v == "large" && len(r.Headers) > 8:
				return errTooLarge
			case v == "large", v == "away":
				return errors.New("not now")
			}
			return nil
		}
		healed := time.Now().Add(time.Minute)
		w.spool.fail = func() error {
			if time.Now().Before(healed) {
				return errors.New("no space")
			}
			return nil
		}
		w.run(t, p)
		equal(t, "held", w.told.held, []string{"no_home "})
		if h := w.told.homes(); h["spooled"] != 3 || h["dead_letter"] != 1 || p.last() != 4 {
			t.Errorf("homes %v, committed %d", h, p.last())
		}
		if len(w.spool.lines) != 2 || len(w.spool.oversize) != 1 {
			t.Errorf("spooled %d and %d oversize", len(w.spool.lines), len(w.spool.oversize))
		}
	})
}

func TestReadOnly_OneMoreTryBeforeTheHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.db.away = func() error { return sqlstate("25006") }
		time.AfterFunc(time.Hour, p.depart)
		w.run(t, p)
		if len(w.db.writes) != 2 || !w.db.fresh[1] {
			t.Errorf("%d writes, fresh %v", len(w.db.writes), w.db.fresh)
		}
	})
}

func TestBreaker_DuplicatesResetTheCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(func(w *world) { w.config.ParkBatches = 1 })
		p := newPartition(t, recordsOf(0, good("a")...), recordsOf(1, good("x1")...), recordsOf(2, good("a")...), recordsOf(3, good("x2")...))
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

func TestRetry_NotAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		ctx, cancel := context.WithCancel(t.Context())
		w.db.probed = func(int, time.Time) { t.Error("probed after the end") }
		w.db.away = func() error { cancel(); return sqlstate("08006") }
		if err := w.pipe.Run(ctx, p); err != nil {
			t.Error(err)
		}
		if len(w.db.writes) != 1 || p.last() != -1 {
			t.Errorf("%d writes, committed %d", len(w.db.writes), p.last())
		}
	})
}

func TestReplay_OutageDuringASearchSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		w := newWorld(replayer)
		w.db.hook = func(context.Context) { time.Sleep(time.Second) } // every write takes a second
		w.db.away = func() error {
			if time.Since(from) < 6*time.Second {
				return sqlstate("08006")
			}
			return nil
		}
		w.db.probe = func(time.Time) error {
			if since := time.Since(from); since > 1500*time.Millisecond && since < 5*time.Second {
				return sqlstate("08006")
			}
			return nil
		}
		w.pipe.cfg.RetryPauses = nil
		p := newPartition(t, parkedOf(4, "a", "b", "c", "d"))
		w.run(t, p)
		if h := w.told.homes(); h["row"] != 4 || len(w.kafka.took) != 0 || p.last() != 4 {
			t.Errorf("homes %v, published %d, committed %d, held %v", h, len(w.kafka.took), p.last(), w.told.held)
		}
	})
}

func TestProbe_AtTheTimeOfATypicalDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		logs := good("a", "b", "x", "y", "z")
		logs[1] = strings.Replace(logs[1], "2026-", "9999-", 1)
		logs[3] = strings.Replace(logs[3], "2026-", "0001-", 1)
		w.db.refuse = func(id string) error {
			if id == "x" {
				return sqlstate("22001")
			}
			return nil
		}
		asked := 0
		w.db.probed = func(_ int, at time.Time) {
			if asked++; at.Year() != 2026 {
				t.Errorf("probed at %v", at)
			}
		}
		w.run(t, newPartition(t, recordsOf(0, logs...)))
		if h := w.told.homes(); asked == 0 || h["dead_letter"] != 1 || h["row"] != 4 {
			t.Errorf("probed %d times, homes %v", asked, h)
		}
	})
}

// TestPanic_OutsideTheDecoderIsNotCaught: shared state may be half changed, so the process ends and the next one
// reads the batch again.
func TestPanic_OutsideTheDecoderIsNotCaught(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(*world){
		"in the store":     func(w *world) { w.db.hook = func(context.Context) { panic("planted") } },
		"in the publisher": func(w *world) { w.kafka.fail = func(*kgo.Record) error { panic("planted") } },
		"in the spool": func(w *world) {
			w.kafka.fail = func(*kgo.Record) error { return errTooLarge }
			w.spool.fail = func() error { panic("planted") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := newWorld(plant), newPartition(t, recordsOf(0, logOf("a"), "nonsense"), recordsOf(2, logOf("b")))
			defer func() {
				if recover() == nil {
					t.Error("it was swallowed")
				}
				if p.last() >= 0 {
					t.Errorf("committed %d", p.last())
				}
			}()
			_ = w.pipe.Run(t.Context(), p)
		})
	}
}
