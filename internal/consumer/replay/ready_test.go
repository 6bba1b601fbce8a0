package replay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWindow_LetsNothingThroughWhenLeaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(config(), newLog(due(0, 0), due(1, 0)))
		ctx, leave := context.WithCancel(t.Context())
		if err := w.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		leave() // while it waits for its turn
		if b, err := w.Fetch(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("let through %v, %v", b, err)
		}
		if err := w.Ready(ctx); !errors.Is(err, context.Canceled) || w.Waiting() != 2 {
			t.Errorf("%d wait, ready: %v", w.Waiting(), err)
		}
	})
}

func TestFetch_DoesNotWaitAfterReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := time.Now()
		w := New(config(), newLog(due(0, 0)))
		if err := w.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.waiting[0].due = from.Add(time.Hour) // as if the clock were set back
		if b, err := w.Fetch(t.Context()); err != nil || len(b.Records()) != 0 || !time.Now().Equal(from) {
			t.Errorf("let through %v after %v, %v", b, time.Since(from), err)
		}
		if b, err := w.Fetch(t.Context()); err != nil || len(b.Records()) != 1 || time.Since(from) != time.Hour {
			t.Errorf("let through %v after %v, %v", b, time.Since(from), err)
		}
	})
}
