package tracing

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/record/home"
)

// holdSpan is the name of the span of a hold.
const holdSpan = "docket.hold"

// Of a batch, so many at most.
const (
	mostLinks   = 128 // traces that its records came from
	mostRecords = 128 // records with a span of their own
	mostCodes   = 16  // codes of failures that are named
)

// Names of attributes.
const (
	firstKey   = attribute.Key("docket.first_offset")
	lastKey    = attribute.Key("docket.last_offset")
	homeKey    = attribute.Key("docket.home")
	homesKey   = "docket.homes."
	codeKey    = attribute.Key("docket.code")
	codesKey   = attribute.Key("docket.codes")
	outcomeKey = attribute.Key("docket.outcome")
	reasonKey  = attribute.Key("docket.reason")
	letterKey  = attribute.Key("docket.dead_letter_id")
	indexKey   = attribute.Key("docket.index")
	rowsKey    = attribute.Key("docket.rows")
	freshKey   = attribute.Key("docket.fresh_connection")
	classKey   = attribute.Key("docket.class")
)

var _ pipeline.Tracer = (*Tracing)(nil)

// batch follows one batch.
type batch struct {
	tracing *Tracing
	ctx     context.Context
	span    trace.Span
	topic   string
	from    []attribute.KeyValue // its partition
	records map[place]trace.Span
	homes   [home.Spooled + 1]int // decisions that were told of
	failed  []string              // some of their codes
	written string                // the batch's own traceparent, once it was asked for
}

// place is a decision within a batch. In a replay a record is one decision, whatever its index was where it was first read.
type place struct {
	offset int64
	index  int
}

// Batch begins the trace of a batch.
func (t *Tracing) Batch(ctx context.Context, since time.Time, records []*kgo.Record) (context.Context, pipeline.Trace) {
	b := &batch{tracing: t, records: map[place]trace.Span{}}
	var offsets []attribute.KeyValue
	if len(records) > 0 {
		first, last := records[0], records[len(records)-1]
		b.topic, b.from = first.Topic, []attribute.KeyValue{partition(first.Partition)}
		offsets = []attribute.KeyValue{firstKey.Int64(first.Offset), lastKey.Int64(last.Offset)}
	}
	b.ctx, b.span = t.operate(ctx, process, b.topic, trace.WithNewRoot(), trace.WithTimestamp(since),
		trace.WithAttributes(semconv.MessagingBatchMessageCount(len(records))), trace.WithAttributes(b.from...), trace.WithAttributes(offsets...))
	b.meet(since, records)
	return b.ctx, b
}

// meet links the batch to the traces of its records. A record that is replayed continues its own trace.
func (b *batch) meet(since time.Time, records []*kgo.Record) {
	recording := b.span.IsRecording()
	if !recording && !b.tracing.replay {
		return
	}
	type origin struct {
		trace trace.TraceID
		span  trace.SpanID
	}
	met := map[origin]bool{}
	for _, r := range records {
		sc := from(r, b.tracing.header)
		if !sc.IsValid() {
			continue
		}
		if b.tracing.replay && len(b.records) < mostRecords {
			b.follow(r, place{offset: r.Offset}, sc, trace.WithTimestamp(since))
		}
		if at := (origin{sc.TraceID(), sc.SpanID()}); !met[at] {
			met[at] = true
			b.span.AddLink(trace.Link{SpanContext: sc})
		}
		if len(met) == mostLinks {
			return
		}
	}
}

// follow begins the span of one record, in the trace that it came with, or in the batch's where it came with none.
func (b *batch) follow(r *kgo.Record, at place, came trace.SpanContext, more ...trace.SpanStartOption) trace.Span {
	ctx := b.ctx
	options := append(more, trace.WithAttributes(position(r)...), trace.WithAttributes(tombstone(r)...))
	if came.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(context.WithoutCancel(b.ctx), came)
		options = append(options, trace.WithLinks(trace.Link{SpanContext: b.span.SpanContext()}))
	}
	_, span := b.tracing.operate(ctx, process, r.Topic, options...)
	b.records[at] = span
	return span
}

// at is the key of a decision in records.
func (b *batch) at(offset int64, index int) place {
	if b.tracing.replay {
		index = 0
	}
	return place{offset, index}
}

// ID is the batch's trace.
func (b *batch) ID() string {
	if !b.span.IsRecording() {
		return ""
	}
	return b.span.SpanContext().TraceID().String()
}

// Letter gives a forwarded record the traceparent of its own span, or of the batch's span if there are many.
func (b *batch) Letter(r *kgo.Record, index int) string {
	at := b.at(r.Offset, index)
	if span := b.records[at]; span != nil {
		return write(span.SpanContext())
	}
	if len(b.records) < mostRecords {
		return write(b.follow(r, at, from(r, b.tracing.header)).SpanContext())
	}
	if b.written == "" {
		b.written = write(b.span.SpanContext())
	}
	return b.written
}

// Held is a span that lasts as long as the hold of the batch.
func (b *batch) Held(h pipeline.Hold) (release func()) {
	_, span := b.tracing.tracer.Start(b.ctx, holdSpan, trace.WithAttributes(reasonKey.String(h.Reason), codeKey.String(h.Code)))
	return func() { span.End() }
}

// Homed tells where the decisions went that it was told of until now, and ends the spans of those records.
func (b *batch) Homed(r pipeline.HomedBatch) {
	for d := range r.Decisions {
		b.homes[d.Home]++
		if code := d.Cause.Code; code != "" && len(b.failed) < mostCodes && !slices.Contains(b.failed, code) {
			b.failed = append(b.failed, code)
		}
		b.arrived(&d)
	}
	all := []attribute.KeyValue{outcomeKey.String("homed")}
	for h, n := range b.homes {
		if n > 0 {
			all = append(all, attribute.Int(homesKey+home.Home(h).String(), n))
		}
	}
	if len(b.failed) > 0 {
		all = append(all, codesKey.StringSlice(b.failed))
	}
	b.span.SetAttributes(all...)
}

// arrived ends the span of a decision that has its home.
func (b *batch) arrived(d *pipeline.Decision) {
	at := b.at(d.Offset, d.Index)
	span := b.records[at]
	if span == nil {
		return
	}
	delete(b.records, at)
	span.SetAttributes(homeKey.String(d.Home.String()))
	if d.Index >= 0 {
		span.SetAttributes(indexKey.Int(d.Index))
	}
	if d.ID != "" {
		span.SetAttributes(letterKey.String(d.ID))
	}
	if d.Cause.Code != "" {
		fail(span, d.Cause.Code, string(d.Cause.Kind))
	}
	span.End()
}

// Committing is a span of the commit.
func (b *batch) Committing() (done func(error)) {
	_, span := b.tracing.operate(b.ctx, commit, b.topic, trace.WithAttributes(b.from...))
	return func(err error) { finish(span, err) }
}

// End ends the batch, and what has no home of its records.
func (b *batch) End(err error) {
	for _, span := range b.records {
		span.SetAttributes(homeKey.String(home.None.String()))
		span.End()
	}
	if err != nil {
		b.span.SetAttributes(outcomeKey.String("left"))
	}
	finish(b.span, err)
}

// finish ends a span. Of an error it tells the code: its text may be a server's.
func finish(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		v := errclass.Classify(err)
		span.SetAttributes(classKey.String(v.Class.String()))
		fail(span, v.Code, v.Code)
	}
	span.End()
}
