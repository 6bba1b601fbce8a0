package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"docket/internal/collector"
	"docket/internal/record/home"
)

// uploadSpan is the name of the span of an upload.
const uploadSpan = "docket.upload"

// Names of attributes.
const (
	bytesKey    = attribute.Key("docket.bytes")
	inflatedKey = attribute.Key("docket.inflated_bytes")
	topicKey    = attribute.Key(homesKey + "topic")
	deadKey     = attribute.Key(homesKey + "dead_letter")
)

var _ collector.Tracer = (*Tracing)(nil)

// upload follows one upload.
type upload struct {
	tracing     *Tracing
	ctx         context.Context
	span        trace.Span
	traceparent string
	letters     map[int]trace.Span // decisions that are dead-lettered, by their place in the upload
}

// Upload continues the trace that an upload came with, or begins one. Its records continue the upload's span. The span is
// all that is known of their origin without reading payloads.
func (t *Tracing) Upload(traceparent string) collector.Trace {
	ctx := context.Background()
	if len(traceparent) == traceparentBytes {
		if came := parse(traceparent); came.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, came)
		}
	}
	u := &upload{tracing: t}
	u.ctx, u.span = t.tracer.Start(ctx, uploadSpan, trace.WithSpanKind(trace.SpanKindServer))
	u.traceparent = write(u.span.SpanContext())
	return u
}

// Traceparent is the upload's own.
func (u *upload) Traceparent() string { return u.traceparent }

// Letter gives a decision that is dead-lettered a span of its own, or the upload's where there are many.
func (u *upload) Letter(index int, code string) string {
	if !u.span.IsRecording() {
		return u.traceparent
	}
	span := u.letters[index]
	if span == nil {
		if len(u.letters) == mostRecords {
			return u.traceparent
		}
		if u.letters == nil {
			u.letters = map[int]trace.Span{}
		}
		_, span = u.tracing.operate(u.ctx, create, u.tracing.letters, trace.WithAttributes(indexKey.Int(index), homeKey.String(home.None.String())))
		fail(span, code, "decode")
		u.letters[index] = span
	}
	return write(span.SpanContext())
}

// Publishing is a span for as long as the brokers are waited for.
func (u *upload) Publishing(records int) (done func(error)) {
	_, span := u.tracing.operate(u.ctx, send, "", trace.WithAttributes(semconv.MessagingBatchMessageCount(records)))
	return func(err error) {
		if err != nil {
			code := brokersCode(err)
			fail(span, code, code)
		}
		span.End()
	}
}

// Dead ends the span of a decision that has its home.
func (u *upload) Dead(index int, id string) {
	if span := u.letters[index]; span != nil {
		span.SetAttributes(homeKey.String(home.DeadLetter.String()), letterKey.String(id))
		span.End()
	}
}

// End tells how it was answered, and ends what has no home.
func (u *upload) End(e collector.Ended) {
	for _, span := range u.letters {
		span.End() // once more is nothing
	}
	u.span.SetAttributes(semconv.HTTPResponseStatusCode(e.Status), topicKey.Int(e.Topic), deadKey.Int(e.Dead), bytesKey.Int64(e.Bytes), inflatedKey.Int64(e.Inflated))
	if e.Reason != "" {
		u.span.SetAttributes(reasonKey.String(e.Reason), semconv.ErrorTypeKey.String(e.Reason))
		u.span.SetStatus(codes.Error, e.Reason)
	}
	u.span.End()
}
