package tracing

import (
	"context"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric/noop"

	"docket/internal/errclass"
)

// statements makes spans of statements by the driver's own plug-in. The plug-in would record the server's text of an
// error, which can quote a row. So it gets the code alone. It sees no arguments and no address of the server.
type statements struct{ plugin *otelpgx.Tracer }

var (
	_ pgx.QueryTracer       = statements{}
	_ pgx.CopyFromTracer    = statements{}
	_ pgx.ConnectTracer     = statements{}
	_ pgxpool.AcquireTracer = statements{}
)

// Statements is what a pool of connections tells its statements to.
func (t *Tracing) Statements() pgx.QueryTracer {
	return statements{otelpgx.NewTracer(
		otelpgx.WithTracerProvider(t.provider), otelpgx.WithMeterProvider(noop.NewMeterProvider()),
		otelpgx.WithDisableConnectionDetailsInAttributes(),
	)}
}

// told is an error that says its code and nothing else.
type told string

func (t told) Error() string { return string(t) }

// refusal is an error of which nothing but the code is left.
type refusal struct{ told }

// As makes it what the plug-in looks for, where the server gave the code.
func (r refusal) As(target any) bool {
	if pg, ok := target.(**pgconn.PgError); ok {
		*pg = &pgconn.PgError{Code: r.Error()}
		return true
	}
	return false
}

// codeOnly leaves nothing of an error but its code.
func codeOnly(err error) error {
	if err == nil {
		return nil
	}
	v := errclass.Classify(err)
	if len(v.Code) != 5 { // no SQLSTATE
		return told(v.Code)
	}
	return refusal{told(v.Code)}
}

// TraceQueryStart begins a statement.
func (s statements) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	data.Args = nil
	return s.plugin.TraceQueryStart(ctx, conn, data)
}

// TraceQueryEnd ends it.
func (s statements) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	data.Err = codeOnly(data.Err)
	s.plugin.TraceQueryEnd(ctx, conn, data)
}

// TraceCopyFromStart begins a COPY.
func (s statements) TraceCopyFromStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	return s.plugin.TraceCopyFromStart(ctx, conn, data)
}

// TraceCopyFromEnd ends it.
func (s statements) TraceCopyFromEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData) {
	data.Err = codeOnly(data.Err)
	s.plugin.TraceCopyFromEnd(ctx, conn, data)
}

// TraceConnectStart begins to connect.
func (s statements) TraceConnectStart(ctx context.Context, data pgx.TraceConnectStartData) context.Context {
	return s.plugin.TraceConnectStart(ctx, data)
}

// TraceConnectEnd says how it went.
func (s statements) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	data.Err = codeOnly(data.Err)
	s.plugin.TraceConnectEnd(ctx, data)
}

// TraceAcquireStart begins to wait for a connection of the pool.
func (s statements) TraceAcquireStart(ctx context.Context, pool *pgxpool.Pool, data pgxpool.TraceAcquireStartData) context.Context {
	return s.plugin.TraceAcquireStart(ctx, pool, data)
}

// TraceAcquireEnd says how it went.
func (s statements) TraceAcquireEnd(ctx context.Context, pool *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	data.Err = codeOnly(data.Err)
	s.plugin.TraceAcquireEnd(ctx, pool, data)
}
