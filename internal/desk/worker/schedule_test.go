package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

func newTestSchedule(t *testing.T, b *jobsBook, holder string, probe func() error, change ...func(*ScheduleConfig)) func(context.Context) {
	t.Helper()
	cfg := ScheduleConfig{Holder: holder, First: time.Minute, Interval: 5 * time.Minute, Kinds: []envelope.Kind{envelope.Transient, envelope.Exhausted}, MaxAttempts: 3}
	for _, c := range change {
		c(&cfg)
	}
	s, err := NewSchedule(cfg, b, probeFunc(probe), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) { _ = s.Run(ctx) }
}

func (b *jobsBook) inState(s ledger.State) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.letters {
		if l.State == s {
			n++
		}
	}
	return n
}

// movedAt returns the times of moves with letters, in whole seconds after begin.
func (b *jobsBook) movedAt(begin time.Time) (at []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.moves {
		if s := int(m.at.Sub(begin).Seconds()); m.n > 0 && !slices.Contains(at, s) {
			at = append(at, s)
		}
	}
	return at
}

// askedAt has the times of probes.
type askedAt struct {
	mu sync.Mutex
	at []time.Duration
}

func (a *askedAt) add(d time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, d)
	return len(a.at)
}

func (a *askedAt) all() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.at)
}

func TestSchedule_NeverOfKindDecode(t *testing.T) {
	t.Parallel()
	for _, kinds := range [][]envelope.Kind{{envelope.Decode}, {envelope.Transient, envelope.Decode}, {"odd"}, {""}} {
		if _, err := NewSchedule(ScheduleConfig{Kinds: kinds}, newJobsBook(0), probeFunc(well), zerolog.Nop()); err == nil {
			t.Errorf("%v are taken", kinds)
		}
	}
}

func TestSchedule_FirstAndInterval(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(3)
		b.add("failed", ledger.Failed, envelope.Transient)
		b.add("data", ledger.Pending, envelope.Data)
		b.add("decode", ledger.Pending, envelope.Decode)
		b.add("resolved", ledger.Resolved, envelope.Transient)
		b.add("exhausted", ledger.Pending, envelope.Exhausted)
		b.add("often", ledger.Pending, envelope.Transient)
		b.byID["often"].Attempts = 3
		begin := time.Now()
		play(newTestSchedule(t, b, "a", well))
		play(func(ctx context.Context) { b.consumer(ctx, 10*time.Second, always(ledger.SendingDead, "57P03")) })
		settle(17 * time.Minute)
		if at := b.movedAt(begin); !slices.Equal(at, []int{60, 360, 660, 960}) {
			t.Errorf("retried after %v s", at)
		}
		for _, s := range b.sendings {
			if slices.Contains([]string{"failed", "data", "decode", "resolved", "often"}, s.LetterID) {
				t.Errorf("%s was retried", s.LetterID)
			}
			if s.By != "schedule" {
				t.Errorf("by %q", s.By)
			}
		}
		if n := len(b.sendings); n != 16 {
			t.Errorf("%d retries, not 4 of each of 4", n)
		}
	})
}

func TestSchedule_OneOfSeveralDesks(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(0)
		b.skew = -time.Hour
		b.add("one", ledger.Pending, envelope.Transient)
		begin := time.Now()
		stop := play(newTestSchedule(t, b, "a", well))
		settle(100 * time.Second)
		play(newTestSchedule(t, b, "b", well))
		play(newTestSchedule(t, b, "c", well))
		play(func(ctx context.Context) { b.consumer(ctx, time.Second, always(ledger.SendingDead, "57P03")) })
		settle(30 * time.Minute)
		stop()
		settle(30 * time.Minute)
		at := b.movedAt(begin)
		if len(at) < 12 || len(at) > 13 {
			t.Errorf("in an hour retried after %v s", at)
		}
		for i := 1; i < len(at); i++ {
			if d := at[i] - at[i-1]; d < 294 || d > 306 {
				t.Errorf("%d s between two runs: %v", d, at)
			}
		}
	})
}

func TestSchedule_OnceInARun(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, -time.Hour, time.Hour} {
		inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
			b := newJobsBook(0)
			b.skew = skew
			for i := range 1230 {
				b.add(fmt.Sprint(i), ledger.Pending, envelope.Transient)
			}
			play(newTestSchedule(t, b, "a", well))
			play(func(ctx context.Context) { b.consumer(ctx, 20*time.Millisecond, always(ledger.SendingDead, "57P03")) })
			settle(4 * time.Minute)
			if len(b.sendings) != 1230 {
				t.Errorf("%d retries of 1230 letters", len(b.sendings))
			}
			if m := slices.Max(b.sizes()); m != 50 {
				t.Errorf("%d at a time", m)
			}
		})
	}
}

func TestSchedule_OutageCostsNoAttempt(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(3)
		begin := time.Now()
		var probes askedAt
		var away atomic.Bool
		away.Store(true)
		play(newTestSchedule(t, b, "a", func() error {
			probes.add(time.Since(begin) - time.Minute)
			if away.Load() {
				return errors.New("away")
			}
			return nil
		}))
		settle(6*time.Minute - time.Second)
		asked := probes.all()
		for i, ms := range []int64{0, 100, 300, 700, 1500, 3100, 6300, 12700, 22700, 32700} {
			if asked[i].Milliseconds() != ms {
				t.Fatalf("asked after %v", asked[:10])
			}
		}
		if last := asked[len(asked)-1]; last > 295*time.Second || last < 280*time.Second {
			t.Errorf("the run did not end before the next was due: it asked after %v", last)
		}
		if b.inState(ledger.Pending) != 3 || len(b.moves) > 0 {
			t.Errorf("something was retried")
		}
		settle(30 * time.Second)
		asked = probes.all()
		for _, next := range []time.Duration{300 * time.Second, 300*time.Second + 100*time.Millisecond} {
			if !slices.Contains(asked, next) {
				t.Errorf("the next run did not begin in time: asked after %v", asked)
			}
		}
		away.Store(false)
		settle(11 * time.Second)
		if n := b.inState(ledger.Processing); n != 3 {
			t.Errorf("%d are retried once the table is back", n)
		}
	})
}

func TestSchedule_PauseAfterASuccess(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(120)
		var probes askedAt
		begin := time.Now()
		play(newTestSchedule(t, b, "a", func() error {
			if n := probes.add(time.Since(begin) - time.Minute); n == 1 || n == 2 || n == 4 {
				return errors.New("away")
			}
			return nil
		}, func(c *ScheduleConfig) { c.Kinds = c.Kinds[:1] }))
		settle(2 * time.Minute)
		const ms = time.Millisecond
		asked, want := probes.all(), []time.Duration{0, 100 * ms, 300 * ms, 400 * ms, 500 * ms, 600 * ms}
		if !slices.Equal(asked, want) {
			t.Errorf("asked after %v, not %v", asked, want)
		}
	})
}

func TestSchedule_RestartKeepsTheInterval(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(1)
		begin := time.Now()
		play(func(ctx context.Context) { b.consumer(ctx, time.Second, always(ledger.SendingDead, "57P03")) })
		for range 8 {
			stop := play(newTestSchedule(t, b, "a", well))
			settle(100 * time.Second)
			stop()
		}
		if at := b.movedAt(begin); len(at) != 3 || at[1] < 60+295 || at[2] < at[1]+295 {
			t.Errorf("retried after %v s", at)
		}
	})
}

func TestSchedule_RetriesAFailedPortion(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(200)
		n := 0
		b.fails = func(act string) error {
			if n++; act == "retry" && n%3 != 0 {
				return errors.New("away")
			}
			return nil
		}
		play(newTestSchedule(t, b, "a", well))
		settle(3 * time.Minute)
		if n := b.inState(ledger.Processing); n != 200 {
			t.Errorf("%d are retried", n)
		}
	})
}

func TestSchedule_NoKinds(t *testing.T) {
	t.Parallel()
	inJobs(t, func(t *testing.T, play func(func(context.Context)) func()) {
		b := newJobsBook(3)
		play(newTestSchedule(t, b, "a", well, func(c *ScheduleConfig) { c.Kinds = nil }))
		settle(time.Hour)
		if len(b.moves) > 0 || !b.duty.done.IsZero() {
			t.Error("it did something")
		}
	})
}
