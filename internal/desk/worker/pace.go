package worker

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/errclass"
)

// idle waits for d, or until ctx ends, which it says.
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

// doubling is first, doubled n times, but no longer than most.
func doubling(first, most time.Duration, n int) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}

// trouble tells of work that fails again and again once for each reason, and once when it goes on. It belongs to one
// goroutine.
type trouble struct {
	log   zerolog.Logger
	work  string // what does not go on, for the lines
	code  string // why; empty: it goes on
	times int    // it failed in a row
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
			t.went()
			pause = 0
		default:
			t.went()
		}
		if idle(ctx, pause) {
			return nil
		}
	}
}

// failed notes a failure; a context that ended is none.
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

// went notes that it went well.
func (t *trouble) went() {
	if t.times > 0 {
		t.log.Warn().Int("failures", t.times).Str("work", t.work).Msg("desk work recovered")
	}
	t.code, t.times = "", 0
}

// pause is how long to wait after so many failures in a row: from every, doubling to ten seconds.
func (t *trouble) pause(every time.Duration) time.Duration {
	return doubling(every, max(every, longestPause), max(t.times-1, 0))
}

// longestPause is the longest between two tries of something that fails for everybody.
const longestPause = 10 * time.Second
