package store

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/postgres/db"
)

// stated tells of a statement until its end is told. It comes before the first byte of it is sent.
func (t *transaction) stated(sql string) (ended func(pgconn.CommandTag, error)) {
	tracer, _ := db.TracerOf(t.ctx).(pgx.QueryTracer)
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
	tracer, _ := db.TracerOf(t.ctx).(pgx.CopyFromTracer)
	if tracer == nil {
		return func(pgconn.CommandTag, error) {}
	}
	ctx := tracer.TraceCopyFromStart(t.ctx, nil, pgx.TraceCopyFromStartData{TableName: pgx.Identifier{"decision_logs"}})
	return func(tag pgconn.CommandTag, err error) {
		tracer.TraceCopyFromEnd(ctx, nil, pgx.TraceCopyFromEndData{CommandTag: tag, Err: err})
	}
}
