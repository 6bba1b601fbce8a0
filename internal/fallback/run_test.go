package fallback_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

type discard struct{}

func (discard) Publish(_ context.Context, r []*kgo.Record) []error { return make([]error, len(r)) }

// running starts Run and stops it at the end of the test.
func running(t *testing.T, s *fallback.Spool, idle func() bool, p fallback.Publisher) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, idle, p) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func TestRun_EmptiesTheSpoolWhileIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, cfg(), fstest.New())
		for _, k := range keysFrom("k", 40) {
			mustAppend(t, s, linesOf(k)...)
		}
		b := &broker{}
		running(t, s, func() bool { return true }, b)
		time.Sleep(5 * time.Second)
		wantKeys(t, b.keys(), keysFrom("k", 40)...)
		mustAppend(t, s, linesOf("late")...)
		time.Sleep(2 * time.Second)
		if got := b.keys(); got[len(got)-1] != "late" {
			t.Error("a file that came later is not recovered")
		}
	})
}

func TestRun_OneFileAMinuteIfNeverIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, cfg(), fstest.New())
		for _, k := range keysFrom("k", 40) {
			mustAppend(t, s, linesOf(k)...)
		}
		b := &broker{}
		running(t, s, func() bool { return false }, b)
		time.Sleep(10*time.Minute + 10*time.Second)
		if n := len(b.keys()); n < 10 || n > 11 {
			t.Errorf("%d files in ten minutes", n)
		}
	})
}

func TestRun_BacksOffAfterFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, cfg(), fstest.New())
		mustAppend(t, s, linesOf("a")...)
		b := &broker{answer: away}
		running(t, s, func() bool { return true }, b)
		time.Sleep(time.Hour)
		if n := b.tries(); n < 55 || n > 70 {
			t.Errorf("%d tries in an hour", n)
		}
		b.refuse(nil)
		time.Sleep(61 * time.Second)
		wantKeys(t, b.keys(), "a")
	})
}

func TestRun_OversizeAtTheStartAndEachHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, cfg(), fstest.New())
		big := linesOf("big")
		big[0].Oversize = true
		mustAppend(t, s, big...)
		var tries atomic.Int64
		b := &broker{answer: func(r *kgo.Record) error {
			if string(r.Key) == "big" {
				tries.Add(1)
				return tooLarge(0)(r)
			}
			return nil
		}}
		running(t, s, func() bool { return true }, b)
		time.Sleep(time.Minute)
		if tries.Load() != 1 {
			t.Errorf("%d tries at the start", tries.Load())
		}
		mustAppend(t, s, linesOf("small")...)
		time.Sleep(3 * time.Hour)
		if n := tries.Load(); n != 4 {
			t.Errorf("%d tries after three hours", n)
		}
		wantKeys(t, b.keys(), "small")
		if st := s.Stats(); st.OversizeRecords != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// closing is a publisher that closes the spool while it publishes.
type closing struct {
	t      *testing.T
	spool  *fallback.Spool
	closed chan error
}

func (c *closing) Publish(_ context.Context, records []*kgo.Record) []error {
	go func() { c.closed <- c.spool.Close() }()
	select {
	case err := <-c.closed:
		c.closed <- err
		c.t.Error("the directory was given up while a file of it was being recovered")
	case <-time.After(100 * time.Millisecond): // long enough for a Close that does not wait
	}
	return make([]error, len(records))
}

func TestClose_WaitsForARecovery(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	mustAppend(t, s, linesOf("a")...)
	p := &closing{t, s, make(chan error, 1)}
	if r := mustRecover(t, s, p); !r.Done {
		t.Errorf("recovered %+v", r)
	}
	if err := <-p.closed; err != nil {
		t.Error(err)
	}
	if err := s.Append(t.Context(), linesOf("b")); !errors.Is(err, fallback.ErrClosed) {
		t.Errorf("append to a closed spool: %v", err)
	}
}
