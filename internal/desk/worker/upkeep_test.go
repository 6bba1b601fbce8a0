package worker

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
)

// duties is a ledger.Upkeep in memory that counts.
type duties struct {
	ledger.Upkeep // nil: the tests call no other method
	calls         map[string]int
	holder        map[string]string
	done          map[string]time.Time
	resolved      int
	before        time.Time
	lost          bool // another desk has a duty when it is done
	away          atomic.Bool
}

func newDuties() *duties {
	return &duties{calls: map[string]int{}, holder: map[string]string{}, done: map[string]time.Time{}}
}

func (d *duties) call(name string) error {
	d.calls[name]++
	if d.away.Load() {
		return sqlError("57P03")
	}
	return nil
}

func (d *duties) EndLeases(context.Context, ledger.Actor) (int, error) { return 0, d.call("leases") }
func (d *duties) Compact(context.Context) error                        { return d.call("compact") }

func (d *duties) Remove(_ context.Context, before time.Time, n int, _ ledger.Actor) (int, error) {
	d.before = before
	n = min(n, d.resolved)
	d.resolved -= n
	return n, d.call("remove")
}

func (d *duties) Unarchived(_ context.Context, before time.Time) (int64, error) {
	if ago := time.Since(before); ago < time.Hour || ago > time.Hour+time.Minute {
		return 0, fmt.Errorf("asked for what was closed %v ago", ago)
	}
	return 3, d.call("unarchived")
}

func (d *duties) Duty(_ context.Context, name, holder string, every, _ time.Duration) (bool, error) {
	if err := d.call("duty " + name); err != nil {
		return false, err
	}
	if h := d.holder[name]; h != "" && h != holder || every > 0 && time.Since(d.done[name]) < every {
		return false, nil
	}
	d.holder[name] = holder
	return true, nil
}

func (d *duties) DutyDone(_ context.Context, name, _ string) error {
	d.done[name], d.holder[name] = time.Now(), ""
	if d.lost {
		return fmt.Errorf("%w: %s", ledger.ErrLost, name)
	}
	return d.call("done " + name)
}

func (d *duties) Counts(context.Context, ledger.Filter) (map[ledger.State]int64, error) {
	return map[ledger.State]int64{ledger.Pending: 7}, d.call("counts")
}

func (d *duties) Snoozed(context.Context) (int64, error) { return 4, d.call("snoozed") }

func upkeeping(t *testing.T, cfg UpkeepConfig, d *duties, span time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), span)
	defer stop()
	cfg.Holder, cfg.KeepResolved, cfg.Counter = "me", time.Hour, d
	if err := NewUpkeep(cfg, d, ledger.Actor{Name: "desk"}, zerolog.Nop()).Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestUpkeep_Intervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDuties()
		d.resolved = 3*removePortion + 1
		m := NewMetrics(prometheus.NewRegistry())
		looks := 0
		leftOff := func(context.Context) (int64, error) { looks++; return int64(12 - looks), nil }
		upkeeping(t, UpkeepConfig{Observer: m, LeftOff: leftOff}, d, 10*time.Minute-time.Second/2)
		for what, want := range map[string]int{"leases": 600, "duty desk:me": 600, "compact": 60, "remove": 4 + 9, "counts": 60, "unarchived": 10} {
			if d.calls[what] != want {
				t.Errorf("%s: %d times in ten minutes, want %d", what, d.calls[what], want)
			}
		}
		if d.resolved != 0 || time.Since(d.before) < time.Hour || time.Since(d.before) > time.Hour+time.Minute {
			t.Errorf("%d left, removed what was resolved %v ago", d.resolved, time.Since(d.before))
		}
		if n := testutil.ToFloat64(m.letters.WithLabelValues("PENDING")); n != 7 {
			t.Errorf("the gauge says %v", n)
		}
		if n := testutil.ToFloat64(m.snoozed); n != 4 || d.calls["duty alerts"] != 0 {
			t.Errorf("the gauge of snoozed ones says %v", n)
		}
		if n := testutil.ToFloat64(m.unarchived); n != 3 {
			t.Errorf("%v closed dead letters wait for an archive", n)
		}
		if n := testutil.ToFloat64(m.leftOff); looks != 10 || n != 2 {
			t.Errorf("%d looks for days that were left off, and the gauge says %v", looks, n)
		}
	})
}

func TestUpkeep_DutyOfAnotherDesk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDuties()
		d.holder["compact"], d.holder["remove"] = "other", "other"
		upkeeping(t, UpkeepConfig{}, d, time.Hour)
		if d.calls["compact"] != 0 || d.calls["remove"] != 0 || d.calls["leases"] == 0 {
			t.Errorf("calls %v", d.calls)
		}
	})
}

func TestUpkeep_AfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDuties()
		d.away.Store(true)
		go func() { time.Sleep(30 * time.Minute); d.away.Store(false) }()
		upkeeping(t, UpkeepConfig{}, d, 30*time.Minute-time.Millisecond)
		if n := d.calls["leases"]; n > 250 {
			t.Errorf("asked %d times in half an hour", n)
		}
		synctest.Wait()
		d.calls = map[string]int{}
		time.Sleep(time.Second)
		upkeeping(t, UpkeepConfig{}, d, 2*time.Minute)
		if d.calls["leases"] < 119 || d.calls["done compact"] < 11 || d.calls["done remove"] < 2 {
			t.Errorf("calls %v", d.calls)
		}
	})
}

func TestUpkeep_DutyLongerThanItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDuties()
		d.lost = true
		var log bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute-time.Second/2)
		defer stop()
		if err := NewUpkeep(UpkeepConfig{Holder: "me", KeepResolved: time.Hour}, d, ledger.Actor{Name: "desk"}, zerolog.New(&log)).Run(ctx); err != nil || log.Len() > 0 {
			t.Errorf("Run = %v, the log: %s", err, log.String())
		}
		if d.calls["compact"] != 60 {
			t.Errorf("summed up %d times", d.calls["compact"])
		}
	})
}
