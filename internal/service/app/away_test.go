package app

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/errclass"
	"docket/internal/service/config"
)

// awayAtTheStart runs a program with one batch whose database is away, up to the hold of the start.
func awayAtTheStart(t *testing.T, away *atomic.Bool, probes *atomic.Int64, refuse func() error) (*world, *partition) {
	t.Helper()
	w := setup(t, config.Consumer, Options{}, "DOCKET_PARK_BATCHES=3", "DOCKET_RETRY_PAUSES=1ms,1ms")
	dial := func() error {
		if away.Load() {
			return errclass.As(errors.New("dial"), errclass.CodeNetwork)
		}
		return nil
	}
	away.Store(true)
	w.db.probe, w.db.refuse, w.db.block = func() error { probes.Add(1); return dial() }, dial, make(chan struct{})
	if refuse != nil {
		w.db.refuse = refuse
	}
	p := newPartition("decision-logs", decisionLog(0))
	t.Cleanup(p.leave)
	w.source.assignments = []Assignment{p}
	w.run()
	w.until("it holds", func() bool {
		status, _ := w.ready()
		return status == 503 && slices.Contains(w.noted(), "source began")
	})
	return w, p
}

func TestStart_DatabaseAwayParksNothing(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	var probes atomic.Int64
	w, p := awayAtTheStart(t, &away, &probes, nil)
	close(w.db.block)
	w.until("every try has failed", func() bool { return strings.Count(w.log.String(), "database write failed") == 3 })
	asked := probes.Load()
	w.until("the batch asks for the database too", func() bool { return p.offset() >= 0 || probes.Load() > asked+20 })
	away.Store(false)
	w.until("the batch is committed", func() bool { return p.offset() == 1 })
	if n := w.db.rows(); n != 1 {
		t.Errorf("%d rows, the batch was parked", n)
	}
}

func TestStart_FailureAfterTheHoldIsParked(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	w, p := awayAtTheStart(t, &away, new(atomic.Int64), func() error { return errclass.As(errors.New("busy"), errclass.CodeTimeout) })
	away.Store(false)
	w.until("the hold is over", func() bool { status, _ := w.ready(); return status == 200 })
	close(w.db.block)
	w.until("the batch is committed", func() bool { return p.offset() == 1 })
	if n := strings.Count(w.log.String(), `"hold began"`); n != 1 {
		t.Errorf("held %d times", n)
	}
}

// The watchdog must not take for stuck what waits as long as it may.
func TestWatchdog_OutlastsEveryWait(t *testing.T) {
	t.Parallel()
	for _, store := range []time.Duration{time.Second, 5 * time.Minute} {
		s := config.Settings{StoreTimeout: store, RetryPauses: []time.Duration{time.Second, 2 * time.Second}, PublishTimeout: 10 * time.Second}
		if got := patience(s); got < s.RetryBudget() || got < leastPatience {
			t.Errorf("%v with a budget of %v", got, s.RetryBudget())
		}
	}
}
