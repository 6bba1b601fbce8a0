package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A batch is written in pipelines of its own and in COPYs that the driver's tracer sees nothing of, and on connections that
// are dialled beside the pool. So it is told of these here, as the driver would tell it.

// tracerKey is the context's key of the tracer.
type tracerKey struct{}

// traced puts the tracer into the context of a transaction, where there is one.
func (db *DB) traced(ctx context.Context) context.Context {
	if db.where.cfg.Tracer == nil {
		return ctx
	}
	return context.WithValue(ctx, tracerKey{}, db.where.cfg.Tracer)
}

// stated tells of a statement until its end is told. It comes before the first byte of it is sent.
func (t *transaction) stated(sql string) (ended func(pgconn.CommandTag, error)) {
	tracer, _ := t.ctx.Value(tracerKey{}).(pgx.QueryTracer)
	if tracer == nil {
		return func(pgconn.CommandTag, error) {}
	}
	ctx := tracer.TraceQueryStart(t.ctx, nil, pgx.TraceQueryStartData{SQL: sql})
	return func(tag pgconn.CommandTag, err error) {
		tracer.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{CommandTag: tag, Err: err})
	}
}

// copying tells of a COPY until its end is told.
func (t *transaction) copying() (ended func(pgconn.CommandTag, error)) {
	tracer, _ := t.ctx.Value(tracerKey{}).(pgx.CopyFromTracer)
	if tracer == nil {
		return func(pgconn.CommandTag, error) {}
	}
	ctx := tracer.TraceCopyFromStart(t.ctx, nil, pgx.TraceCopyFromStartData{TableName: pgx.Identifier{"decision_logs"}})
	return func(tag pgconn.CommandTag, err error) {
		tracer.TraceCopyFromEnd(ctx, nil, pgx.TraceCopyFromEndData{CommandTag: tag, Err: err})
	}
}

// dialling tells of a connection beside the pool until its end is told.
func (db *DB) dialling(ctx context.Context) (connected func(error)) {
	tracer, _ := db.where.cfg.Tracer.(pgx.ConnectTracer)
	if tracer == nil {
		return func(error) {}
	}
	ctx = tracer.TraceConnectStart(ctx, pgx.TraceConnectStartData{})
	return func(err error) { tracer.TraceConnectEnd(ctx, pgx.TraceConnectEndData{Err: err}) }
}
