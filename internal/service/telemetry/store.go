package telemetry

import (
	"context"

	"docket/internal/consumer/pipeline"
)

// How a write transaction ended.
const (
	resultStored = "stored"
	resultFailed = "failed"
)

// timed is a store whose writes are timed.
type timed struct {
	table
	observer *Observer
}

type table = pipeline.Store

// Timed times each write transaction to a store, whatever becomes of it.
func (o *Observer) Timed(s pipeline.Store) pipeline.Store { return timed{s, o} }

func (t timed) Store(ctx context.Context, rows []pipeline.Row, fresh bool) ([]pipeline.Outcome, error) {
	from := t.observer.now()
	outcomes, err := t.table.Store(ctx, rows, fresh)
	result := resultStored
	if err != nil {
		result = resultFailed
	}
	t.observer.metrics.storeDuration.WithLabelValues(result).Observe(t.observer.now().Sub(from).Seconds())
	return outcomes, err
}
