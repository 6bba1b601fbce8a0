package collect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/pgmodel"
	"docket/internal/testkit/tracingtest"
)

const (
	callerTrace   = "0af7651916cd43dd8448eb211c80319c"
	callerSpan    = "b7ad6b7169203331"
	callerParent  = "00-" + callerTrace + "-" + callerSpan + "-01"
	payloadMarker = "marker-of-a-payload"
	tokenMarker   = "marker-of-a-token"
	otlpMarker    = "marker-of-an-otlp-header"
)

// traced is a collector that tells another one, of OpenTelemetry, what it does.
func traced(t *testing.T, c *kafkatest.Cluster, more ...string) (*running, *tracingtest.Collector) {
	t.Helper()
	told := tracingtest.New(t)
	return run(t, settings(t, c.Brokers(), append([]string{"DOCKET_COLLECTOR_TOKENS=opa-of-" + payloadMarker + ":" + tokenMarker}, more...)...), Options{
		Instance: "one", Farewell: func(context.Context) {},
		Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + told.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=" + otlpMarker},
	}), told
}

// marked is a decision with what no span may hold.
func marked(id string) string {
	return strings.Replace(decision(id), "10.0.0.9:4711", payloadMarker, 1)
}

// post uploads as OPA does whose own request is traced.
func (r *running) post(token, traceparent string, decisions ...string) int {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+r.Uploads().String()+"/logs", bytes.NewReader([]byte("["+strings.Join(decisions, ",")+"]")))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	if traceparent != "" {
		req.Header.Set("Traceparent", traceparent)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// closed stops the collector, which sends the last spans.
func (r *running) closed() {
	r.t.Helper()
	r.stop()
	r.end()
	r.Close()
}

func only(t *testing.T, c *tracingtest.Collector, service, name string) tracingtest.Span {
	t.Helper()
	found := c.Spans(service, name)
	if len(found) != 1 {
		t.Fatalf("%d spans %s of %s, want one", len(found), name, service)
	}
	return found[0]
}

func saying(r *kgo.Record, name string) (values []string) {
	for _, h := range r.Headers {
		if h.Key == name {
			values = append(values, string(h.Value))
		}
	}
	return values
}

func untold(t *testing.T, c *tracingtest.Collector, more ...string) {
	t.Helper()
	for _, marker := range append(more, payloadMarker, tokenMarker, otlpMarker, "127.0.0.1") {
		if c.Holds(marker) {
			t.Errorf("a span holds %q", marker)
		}
	}
}

func TestTrace_UploadToConsumer(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, "decision-logs", "decision-logs-dlq", "decision-logs-parking", "decision-logs-parking-dlq"))
	r, told := traced(t, c)
	if code := r.post(tokenMarker, callerParent, marked("d1"), `{"timestamp":"`+payloadMarker+`"}`, marked("d2")); code != http.StatusOK {
		t.Fatal(code)
	}
	r.closed()
	const service = "docket-collector"
	up, publish := only(t, told, service, "docket.upload"), only(t, told, service, "send")
	if up.Trace() != callerTrace || up.Parent() != callerSpan || up.Attribute("http.response.status_code") != int64(200) ||
		up.Attribute("docket.homes.topic") != int64(2) || up.Attribute("docket.homes.dead_letter") != int64(1) {
		t.Errorf("the upload is not in its caller's trace, or says %v", up)
	}
	if publish.Trace() != callerTrace || publish.Parent() != up.ID() || publish.Attribute("messaging.batch.message_count") != int64(3) ||
		publish.Kind != tracepb.Span_SPAN_KIND_CLIENT || publish.Attribute("messaging.operation.type") != "send" || publish.Attribute("error.type") != nil {
		t.Errorf("the publish: %v", publish)
	}
	own := []string{"00-" + callerTrace + "-" + up.ID() + "-01"}
	records, dead := c.ReadAll(t, "decision-logs"), c.ReadAll(t, "decision-logs-dlq")
	if len(records) != 2 || len(dead) != 1 {
		t.Fatalf("%d records, %d dead letters", len(records), len(dead))
	}
	for _, record := range append(records, dead...) {
		if got := saying(record, "traceparent"); !slices.Equal(got, own) {
			t.Errorf("traceparent %q in %s, want %q", got, record.Topic, own)
		}
	}
	letter, sent := only(t, told, service, "create decision-logs-dlq"), only(t, told, service, "send decision-logs-dlq")
	if letter.Trace() != callerTrace || letter.Parent() != up.ID() || letter.Attribute("docket.index") != int64(1) || letter.Attribute("docket.home") != "dead_letter" ||
		letter.Attribute("docket.code") != "missing_field" || letter.Attribute("error.type") != "missing_field" ||
		letter.Kind != tracepb.Span_SPAN_KIND_PRODUCER || letter.Attribute("messaging.operation.type") != "create" || letter.Attribute("docket.dead_letter_id") != saying(dead[0], "x-dead-letter-id")[0] {
		t.Errorf("the dead letter: %v", letter)
	}
	if got := saying(dead[0], "x-traceparent"); !slices.Equal(got, []string{"00-" + callerTrace + "-" + letter.ID() + "-01"}) || sent.Parent() != letter.ID() {
		t.Errorf("the dead letter does not go on in its own span: %q, %v", got, sent)
	}
	for _, h := range told.Headers() {
		if h.Get("Api-Key") != otlpMarker {
			t.Error("the headers that the collector of traces wants were not sent")
		}
	}

	consume(t, c, told)
	batch := told.Batches("docket-consumer")
	if len(batch) == 0 || !slices.ContainsFunc(batch, func(s tracingtest.Span) bool { return s.LinksTo(callerTrace, up.ID()) && len(s.Links) == 1 }) {
		t.Errorf("no batch of the consumer links to the upload, once: %v", batch)
	}
	if went := told.Records("docket-consumer"); len(went) != 1 || went[0].Trace() != callerTrace || went[0].Parent() != up.ID() || went[0].Attribute("docket.code") != "23514" {
		t.Errorf("what the table refuses is not in the upload's trace: %v", went)
	}
	untold(t, told)
}

// consume has a consumer carry two decisions to a table that refuses the second.
func consume(t *testing.T, c *kafkatest.Cluster, told *tracingtest.Collector) {
	t.Helper()
	db := pgmodel.New(pgmodel.Config{})
	t.Cleanup(db.Close)
	db.Constrain(pgmodel.Constraint{Name: "no_d2", Columns: []string{"decision_id"}, Refuses: func(r pgmodel.Row) bool { return r.DecisionID == "d2" }})
	s, _, err := config.LoadWith(config.Consumer, []string{
		"DOCKET_DATABASE_URL=postgres://docket:x@db.example:5432/docket?sslmode=disable", "DOCKET_KAFKA_BROKERS=" + c.Brokers()[0], "DOCKET_AUTO_MIGRATE=false",
		"DOCKET_PARTITIONS_AHEAD=0", "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_SPOOL_DIR=" + t.TempDir(),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := app.New(config.Consumer, s, zerolog.Nop(), prometheus.NewRegistry(), app.Options{Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + told.URL}, DialDatabase: db.Dial})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.Close()
	}()
	kafkatest.Eventually(t, "both to be carried", func() bool { return c.Committed(t, "docket", "decision-logs")[0] == 2 })
}

func TestTrace_BeginsOne(t *testing.T) {
	t.Parallel()
	c := brokers(t)
	r, told := traced(t, c)
	for i, came := range []string{"", "00-" + payloadMarker, strings.Repeat("x", 55), "00-" + strings.Repeat("0", 32) + "-" + callerSpan + "-01"} {
		if code := r.post(tokenMarker, came, marked(fmt.Sprint("d", i))); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	r.closed()
	traces := map[string]bool{}
	for _, up := range told.Spans("docket-collector", "docket.upload") {
		traces[up.Trace()] = up.Parent() == ""
	}
	if len(traces) != 4 || traces[callerTrace] {
		t.Errorf("traces %v", traces)
	}
	for _, record := range c.ReadAll(t, "decision-logs") {
		if got := saying(record, "traceparent"); len(got) != 1 || !traces[strings.Split(got[0], "-")[1]] {
			t.Errorf("traceparent %q is none of %v", got, traces)
		}
	}
	untold(t, told)
}

func TestTrace_NotSampled(t *testing.T) {
	t.Parallel()
	c := brokers(t)
	r, told := traced(t, c)
	if code := r.post(tokenMarker, strings.TrimSuffix(callerParent, "1")+"0", marked("d1"), "7"); code != http.StatusOK {
		t.Fatal(code)
	}
	r.closed()
	if all := told.Spans("", ""); len(all) != 0 {
		t.Errorf("%d spans of what its caller does not record", len(all))
	}
	for _, topic := range []string{"decision-logs", "decision-logs-dlq"} {
		for _, record := range c.ReadAll(t, topic) {
			if got := saying(record, "traceparent"); len(got) != 1 || !strings.HasPrefix(got[0], "00-"+callerTrace+"-") || !strings.HasSuffix(got[0], "-00") {
				t.Errorf("traceparent %q in %s", got, topic)
			}
		}
	}
}

func TestUpload_RefusedWithReason(t *testing.T) {
	t.Parallel()
	c := brokers(t)
	r, told := traced(t, c, "DOCKET_COLLECTOR_UPLOAD_BYTES=1KiB")
	c.FailTopic(kmsg.Produce, "decision-logs", kerr.TopicAuthorizationFailed, 1)
	for code, body := range map[int]string{503: marked("d1"), 400: payloadMarker, 413: `"` + strings.Repeat(payloadMarker, 100) + `"`} {
		if got := r.post(tokenMarker, callerParent, body); got != code {
			t.Errorf("%d, want %d", got, code)
		}
	}
	if got := r.post(payloadMarker, callerParent, marked("d2")); got != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got)
	}
	r.closed()
	reasons := map[any]string{}
	for _, up := range told.Spans("docket-collector", "docket.upload") {
		reasons[up.Attribute("http.response.status_code")] = fmt.Sprint(up.Attribute("docket.reason"), " ", up.Attribute("error.type"), " ", up.Status.GetMessage())
	}
	want := map[any]string{int64(503): "kafka kafka kafka", int64(400): "syntax syntax syntax", int64(413): "upload_bytes upload_bytes upload_bytes"}
	for code, reason := range want {
		if reasons[code] != reason {
			t.Errorf("%v: %q, want %q", code, reasons[code], reason)
		}
	}
	if len(reasons) != len(want) {
		t.Errorf("whoever has no credentials makes spans: %v", reasons)
	}
	if publish := only(t, told, "docket-collector", "send"); publish.Attribute("docket.code") != "TOPIC_AUTHORIZATION_FAILED" || publish.Attribute("error.type") != "TOPIC_AUTHORIZATION_FAILED" {
		t.Errorf("the publish says %v", publish.Attributes)
	}
	untold(t, told, "not authorized")
}

func TestTrace_WithoutEndpoint(t *testing.T) {
	t.Parallel()
	c := brokers(t)
	r := run(t, settings(t, c.Brokers()), Options{Farewell: func(context.Context) {}, Environ: []string{"OTEL_SERVICE_NAME=mine", "OTEL_TRACES_SAMPLER=always_on"}})
	if code := r.post("", callerParent, marked("d1"), "7"); code != http.StatusOK {
		t.Fatal(code)
	}
	if r.tracing != nil {
		t.Error("there is tracing")
	}
	for _, topic := range []string{"decision-logs", "decision-logs-dlq"} {
		for _, record := range c.ReadAll(t, topic) {
			if len(saying(record, "traceparent"))+len(saying(record, "x-traceparent")) != 0 {
				t.Errorf("headers %v in %s", record.Headers, topic)
			}
		}
	}
}
