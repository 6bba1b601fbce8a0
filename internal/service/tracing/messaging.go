package tracing

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// operation is an operation on Kafka. Names, types and kinds follow the semantic conventions for messaging.
type operation struct {
	name     string
	typ      attribute.KeyValue
	kind     trace.SpanKind
	consumes bool // a group does it
}

var (
	process = operation{"process", semconv.MessagingOperationTypeProcess, trace.SpanKindConsumer, true}
	commit  = operation{"commit", semconv.MessagingOperationTypeSettle, trace.SpanKindClient, true}
	// A record is sent in the context of another span, so its own is a client's.
	send   = operation{"send", semconv.MessagingOperationTypeSend, trace.SpanKindClient, false}
	create = operation{"create", semconv.MessagingOperationTypeCreate, trace.SpanKindProducer, false}
)

// operate starts the span of an operation on a topic. The topic is empty where there are several.
func (t *Tracing) operate(ctx context.Context, o operation, topic string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	name := o.name
	all := []attribute.KeyValue{semconv.MessagingSystemKafka, semconv.MessagingOperationName(o.name), o.typ}
	if topic != "" {
		name += " " + topic
		all = append(all, semconv.MessagingDestinationName(topic))
		if group := t.groups[topic]; o.consumes && group != "" {
			all = append(all, semconv.MessagingConsumerGroupName(group))
		}
	}
	return t.tracer.Start(ctx, name, append(options, trace.WithSpanKind(o.kind), trace.WithAttributes(all...))...)
}

func partition(n int32) attribute.KeyValue {
	return semconv.MessagingDestinationPartitionID(strconv.Itoa(int(n)))
}

// position is where Kafka keeps a record.
func position(r *kgo.Record) []attribute.KeyValue {
	return []attribute.KeyValue{partition(r.Partition), semconv.MessagingKafkaOffset(int(r.Offset))}
}

// tombstone says that a record has a key and no value.
func tombstone(r *kgo.Record) []attribute.KeyValue {
	if r.Key == nil || r.Value != nil {
		return nil
	}
	return []attribute.KeyValue{semconv.MessagingKafkaMessageTombstone(true)}
}

// fail marks a span as failed with a code, which is an SQLSTATE or a constant of the code. It is never an error's text.
func fail(span trace.Span, code, description string) {
	span.SetAttributes(codeKey.String(code), semconv.ErrorTypeKey.String(code))
	span.SetStatus(codes.Error, description)
}
