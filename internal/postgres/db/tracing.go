package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// The driver's tracer sees neither the pipelines and COPYs of a batch, nor the connections that are dialled beside the
// pool. So it is told of these here, as the driver would tell it.

// tracerKey is the context's key of the tracer.
type tracerKey struct{}

// traced puts the tracer into the context of a transaction, where there is one.
func (db *DB) traced(ctx context.Context) context.Context {
	if db.where.cfg.Tracer == nil {
		return ctx
	}
	return context.WithValue(ctx, tracerKey{}, db.where.cfg.Tracer)
}

// TracerOf is the tracer that [DB.traced] put into a context, nil where there is none.
func TracerOf(ctx context.Context) any { return ctx.Value(tracerKey{}) }

// dialling tells of a connection beside the pool until its end is told.
func (db *DB) dialling(ctx context.Context) (connected func(error)) {
	tracer, _ := db.where.cfg.Tracer.(pgx.ConnectTracer)
	if tracer == nil {
		return func(error) {}
	}
	ctx = tracer.TraceConnectStart(ctx, pgx.TraceConnectStartData{})
	return func(err error) { tracer.TraceConnectEnd(ctx, pgx.TraceConnectEndData{Err: err}) }
}
