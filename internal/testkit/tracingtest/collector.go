// Package tracingtest has a collector of OpenTelemetry traces for tests.
package tracingtest

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a collected span.
type Span struct {
	*tracepb.Span
	Service string
}

// Trace returns the id of its trace.
func (s Span) Trace() string { return hex.EncodeToString(s.TraceId) }

// ID returns its id within the trace.
func (s Span) ID() string { return hex.EncodeToString(s.SpanId) }

// Parent returns the ID of the span above, empty if it is the first.
func (s Span) Parent() string { return hex.EncodeToString(s.ParentSpanId) }

// Attribute returns the text of an attribute, or its number; nil if there is none.
func (s Span) Attribute(key string) any {
	i := slices.IndexFunc(s.Attributes, func(kv *commonpb.KeyValue) bool { return kv.Key == key })
	if i < 0 {
		return nil
	}
	switch v := s.Attributes[i].Value.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return v.IntValue
	case *commonpb.AnyValue_BoolValue:
		return v.BoolValue
	}
	return s.Attributes[i].Value.String()
}

// LinksTo reports whether the span has a link to another.
func (s Span) LinksTo(trace, id string) bool {
	return slices.ContainsFunc(s.Links, func(l *tracepb.Span_Link) bool {
		return hex.EncodeToString(l.TraceId) == trace && hex.EncodeToString(l.SpanId) == id
	})
}

// Collector collects spans.
type Collector struct {
	*httptest.Server

	mu      sync.Mutex
	spans   []Span
	bodies  [][]byte
	headers []http.Header
	answer  int
}

// New starts a collector that lives as long as the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{answer: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

// Answer sets the status of later answers.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = status
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = plain
	}
	text, err := io.ReadAll(body)
	var request collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = append(c.headers, r.Header.Clone())
	if c.answer != http.StatusOK {
		http.Error(w, "not now", c.answer)
		return
	}
	c.bodies = append(c.bodies, text)
	for _, rs := range request.ResourceSpans {
		service := ""
		for _, kv := range rs.GetResource().GetAttributes() {
			if kv.Key == "service.name" {
				service = kv.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans = append(c.spans, Span{s, service})
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Spans returns the spans of this service and name, in the order of their begin; empty means any.
func (c *Collector) Spans(service, name string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Span
	for _, s := range c.spans {
		if (service == "" || s.Service == service) && (name == "" || s.Name == name) {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	return found
}

// Batches returns the process spans of a service with a batch; an empty service means any.
func (c *Collector) Batches(service string) []Span {
	return c.having(service, "process", "messaging.batch.message_count")
}

// Records returns the process spans of a service with one record; an empty service means any.
func (c *Collector) Records(service string) []Span {
	return c.having(service, "process", "messaging.kafka.offset")
}

// having returns the spans of an operation that have an attribute.
func (c *Collector) having(service, operation, key string) []Span {
	return slices.DeleteFunc(c.Spans(service, ""), func(s Span) bool {
		return s.Attribute("messaging.operation.name") != operation || s.Attribute(key) == nil
	})
}

// Headers returns the headers of all requests.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// Holds reports whether any collected data contains this text.
func (c *Collector) Holds(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.bodies, func(b []byte) bool { return bytes.Contains(b, []byte(text)) })
}
