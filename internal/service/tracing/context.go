package tracing

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparentBytes is how long a traceparent of version 00 is.
const traceparentBytes = 55

// parse reads a traceparent. Any other text gives a context that is not valid.
func parse(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	return trace.SpanContextFromContext(ctx)
}

// write is the traceparent of a span, empty where it has none.
func write(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier["traceparent"]
}

// from is the trace that the last header of this name tells, as Kafka's own clients read headers.
func from(r *kgo.Record, name string) trace.SpanContext {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if h := &r.Headers[i]; h.Key == name {
			if len(h.Value) != traceparentBytes {
				return trace.SpanContext{}
			}
			return parse(string(h.Value))
		}
	}
	return trace.SpanContext{}
}
