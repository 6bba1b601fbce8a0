package tracing

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/trace"

	"docket/internal/consumer/pipeline"
)

// begin begins a span below one that is recorded; where there is none, nobody asks.
func (t *Tracing) begin(ctx context.Context, name string) (context.Context, trace.Span) {
	if above := trace.SpanFromContext(ctx); !above.IsRecording() {
		return ctx, above
	}
	return t.tracer.Start(ctx, name)
}

// done ends what begin began.
func done(above context.Context, span trace.Span, err error) {
	if span != trace.SpanFromContext(above) {
		finish(span, err)
	}
}

type store struct {
	of      pipeline.Store
	tracing *Tracing
}

// Store makes a span of whatever a batch asks a table.
func (t *Tracing) Store(s pipeline.Store) pipeline.Store { return store{s, t} }

func (s store) Store(ctx context.Context, rows []pipeline.Row, fresh bool) ([]pipeline.Outcome, error) {
	in, span := s.tracing.begin(ctx, "docket.store")
	span.SetAttributes(rowsKey.Int(len(rows)), freshKey.Bool(fresh))
	outcomes, err := s.of.Store(in, rows, fresh)
	done(ctx, span, err)
	return outcomes, err
}

func (s store) Foresee(ctx context.Context, rows []pipeline.Row, constraint string) ([]int, error) {
	in, span := s.tracing.begin(ctx, "docket.foresee")
	places, err := s.of.Foresee(in, rows, constraint)
	done(ctx, span, err)
	return places, err
}

func (s store) Refusals(ctx context.Context, rows []pipeline.Row, probe time.Time) ([]error, error) {
	in, span := s.tracing.begin(ctx, "docket.ask")
	refused, err := s.of.Refusals(in, rows, probe)
	done(ctx, span, err)
	return refused, err
}

func (s store) Probe(ctx context.Context, at time.Time) error {
	in, span := s.tracing.begin(ctx, "docket.probe")
	err := s.of.Probe(in, at)
	done(ctx, span, err)
	return err
}

type spool struct {
	of      pipeline.Spool
	tracing *Tracing
}

// Spool makes a span of each append.
func (t *Tracing) Spool(s pipeline.Spool) pipeline.Spool { return spool{s, t} }

func (s spool) Append(ctx context.Context, records []*kgo.Record, oversize bool) error {
	in, span := s.tracing.begin(ctx, "docket.spool")
	err := s.of.Append(in, records, oversize)
	done(ctx, span, err)
	return err
}
