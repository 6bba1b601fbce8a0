//go:build integration

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	freeName    = "Docket, no limit"
	limitedName = "Docket, limit in Redis"
	// writers is how many batches the consumer writes at a time.
	writers = 4
)

// limit compares a drain with one that asks Redis for every row, under a limit that it does not reach.
func (b *bench) limit(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	settings := []string{"DOCKET_REDIS_URL=redis://" + b.redis.Addr(), "DOCKET_LIMIT_ROWS=1000000000"}
	act := func(name string, settings ...string) func() error {
		return func() error {
			run, err := b.measure(ctx, name, func(ctx context.Context) (Run, error) { return b.drained(ctx, load{topic: t, settings: settings}) })
			if err == nil && len(settings) > 0 && run.InCalls == 0 {
				err = errors.New("the worker says that it never called Redis")
			}
			return err
		}
	}
	if err := b.rounds(b.Rounds, act(freeName), act(limitedName, settings...)); err != nil {
		return err
	}
	limited := b.runs[limitedName]
	b.judge("calls to Redis for rows of the limit, share of the writers' time", Over(limited, func(r Run) float64 { return r.InCalls.Seconds() / (writers * r.Took.Seconds()) }),
		AtMost(0.01), "%.4f", fmt.Sprintf("a writer waits for its call while %d others write", writers-1))
	b.judge("drain with the limit against without, rate", Between(limited, b.runs[freeName], Rates), nil, "", "")
	b.judge("a thousand decisions, calls to Redis, ms", Over(limited, func(r Run) float64 { return float64(r.InCalls) / float64(time.Millisecond) / float64(r.Rows) * 1000 }), nil, "%.3f", "")
	return nil
}
