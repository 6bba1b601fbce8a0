package tracing

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kotel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"docket/internal/envelope"
	"docket/internal/errclass"
)

// producing has the client's own plug-in tell of records that are published. Its other half, which makes a span of each
// record that is fetched and keeps it in the record's context, is left out: tens of thousands of spans a second, for
// records whose memory is used again.
type producing struct {
	plugin  *kotel.Tracer
	tracing *Tracing
}

var (
	_ kgo.HookProduceRecordBuffered   = (*producing)(nil)
	_ kgo.HookProduceRecordUnbuffered = (*producing)(nil)
)

// Hooks are those of a client that publishes.
func (t *Tracing) Hooks() []kgo.Hook {
	return []kgo.Hook{&producing{
		tracing: t,
		plugin: kotel.NewTracer(
			kotel.TracerProvider(t.provider),
			// The record was sealed with its trace, and the spool has the same bytes: nothing is put into it here.
			kotel.TracerPropagator(propagation.NewCompositeTextMapPropagator()),
			kotel.KeyFormatter(func(*kgo.Record) (string, error) { return "", errKey }),
		),
	}}
}

var errKey = errors.New("a key is no business of a collector's")

// OnProduceRecordBuffered begins the span of a record in the trace that it was sealed with.
func (h *producing) OnProduceRecordBuffered(r *kgo.Record) {
	sc := from(r, envelope.Traceparent)
	if !sc.IsSampled() || !h.tracing.publishes.Allow() {
		return
	}
	r.Context = trace.ContextWithRemoteSpanContext(r.Context, sc)
	h.plugin.OnProduceRecordBuffered(r)
	r.Context = context.WithValue(r.Context, begun{}, true)
}

// begun marks the context of a record that has a span: that of another holds the batch's, which is not to be ended here.
type begun struct{}

// OnProduceRecordUnbuffered ends it.
func (h *producing) OnProduceRecordUnbuffered(r *kgo.Record, err error) {
	if r.Context.Value(begun{}) == nil {
		return
	}
	if err != nil {
		err = brokersWord(err)
	}
	h.plugin.OnProduceRecordUnbuffered(r, err)
}

// brokersWord is the code of an error of a publish. Its text may be a server's.
func brokersWord(err error) told {
	if code, ok := errors.AsType[*kerr.Error](err); ok {
		return told(code.Message)
	}
	return told(errclass.Classify(err).Code)
}

// told is an error that says its code and nothing else.
type told string

func (t told) Error() string { return string(t) }
