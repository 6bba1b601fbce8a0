package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// Whatever says stop, it is told before anything ends for it: /readyz and the log are ahead of what follows.
func TestOutlive_TellsThatItStopsFirst(t *testing.T) {
	t.Parallel()
	own := errors.New("one of them failed")
	for name, end := range map[string]struct {
		outside bool
		err     error
	}{"the context ends": {outside: true}, "one of them fails": {err: own}} {
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			var told atomic.Int64
			err := Outlive(ctx, time.Minute, zerolog.Nop(), func() { told.Add(1) }, func(working context.Context, stop context.CancelCauseFunc) error {
				if end.outside {
					cancel()
				} else {
					go stop(end.err)
				}
				<-working.Done()
				if told.Load() != 1 {
					t.Errorf("%s: it was told %d times when its context ended", name, told.Load())
				}
				return end.err
			})
			cancel()
			if !errors.Is(err, end.err) || told.Load() != 1 {
				t.Fatalf("%s: it ended with %v, told %d times", name, err, told.Load())
			}
		}
	}
}
