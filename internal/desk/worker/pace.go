package worker

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/errclass"
)

// idle waits for d, or until ctx ends. It reports whether ctx ended.
func idle(ctx context.Context, d time.Duration) (ended bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() != nil
	case <-ctx.Done():
		return true
	}
}

// doubling returns first, doubled n times, but at most most.
func doubling(first, most time.Duration, n int) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}

// trouble logs repeated failures once for each reason, and the recovery once. It belongs to one goroutine.
type trouble struct {
	log   zerolog.Logger
	work  string // the failing work, for log lines
	code  string // the reason; empty: no failure
	times int    // failures in a row
}

// repeat runs rounds until ctx ends, and returns nil then. It waits for every between two rounds, longer after failures in
// a row, and not at all after a round with more to do.
func (t *trouble) repeat(ctx context.Context, every time.Duration, round func(context.Context) (more bool, err error)) error {
	for {
		more, err := round(ctx)
		pause := every
		switch {
		case err != nil:
			t.failed(ctx, err)
			pause = t.pause(every)
		case more:
			t.succeeded()
			pause = 0
		default:
			t.succeeded()
		}
		if idle(ctx, pause) {
			return nil
		}
	}
}

// failed notes a failure. The end of a context does not count.
func (t *trouble) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	t.times++
	if code := errclass.Classify(err).Code; code != t.code {
		t.code = code
		t.log.Warn().Err(err).Str("code", code).Str("work", t.work).Msg("desk work failed")
	}
}

// succeeded notes a success.
func (t *trouble) succeeded() {
	if t.times > 0 {
		t.log.Warn().Int("failures", t.times).Str("work", t.work).Msg("desk work recovered")
	}
	t.code, t.times = "", 0
}

// pause returns the pause after this many failures in a row: from every, doubling to ten seconds.
func (t *trouble) pause(every time.Duration) time.Duration {
	return doubling(every, max(every, longestPause), max(t.times-1, 0))
}

// longestPause is the longest pause between two tries.
const longestPause = 10 * time.Second
