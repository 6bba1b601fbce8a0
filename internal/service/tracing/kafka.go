package tracing

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/trace"

	"docket/internal/errclass"
	"docket/internal/record/envelope"
)

// producing makes spans of records that are sent. Records that are fetched have none: that would be tens of thousands of
// spans a second, for records whose memory is used again. The client's own plug-in follows older conventions, and would put
// a trace into records that are sealed; the spool has the same bytes.
type producing struct{ tracing *Tracing }

var (
	_ kgo.HookProduceRecordBuffered   = producing{}
	_ kgo.HookProduceRecordUnbuffered = producing{}
)

// Hooks are those of a client that publishes.
func (t *Tracing) Hooks() []kgo.Hook { return []kgo.Hook{producing{t}} }

// sending is the key of a record's span in its context: the context may hold the batch's, which is not to be ended here.
type sending struct{}

// OnProduceRecordBuffered starts the span of a record in the trace that it was sealed with.
func (h producing) OnProduceRecordBuffered(r *kgo.Record) {
	sc := from(r, envelope.Traceparent)
	if !sc.IsSampled() || !h.tracing.publishes.Allow() {
		return
	}
	_, span := h.tracing.operate(trace.ContextWithRemoteSpanContext(r.Context, sc), send, r.Topic,
		trace.WithLinks(trace.Link{SpanContext: sc}), trace.WithAttributes(tombstone(r)...))
	r.Context = context.WithValue(r.Context, sending{}, span)
}

// OnProduceRecordUnbuffered ends it.
func (h producing) OnProduceRecordUnbuffered(r *kgo.Record, err error) {
	span, ok := r.Context.Value(sending{}).(trace.Span)
	if !ok {
		return
	}
	if err != nil {
		code := brokersCode(err)
		fail(span, code, code)
	} else {
		span.SetAttributes(position(r)...)
	}
	span.End()
}

// brokersCode is the code of an error of a publish. Its text may be a server's.
func brokersCode(err error) string {
	if code, ok := errors.AsType[*kerr.Error](err); ok {
		return code.Message
	}
	return errclass.Classify(err).Code
}
