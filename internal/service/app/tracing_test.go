package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/output"
	"docket/internal/testkit/pgmodel"
	"docket/internal/testkit/tracingtest"
)

// These must be found in no span.
const (
	payloadMarker  = "marker-of-a-payload"
	keyMarker      = "marker-of-a-key"
	headerMarker   = "marker-of-a-header"
	passwordMarker = "marker-of-a-password"
	tokenMarker    = "marker-of-a-token"
)

const (
	producerTrace = "0af7651916cd43dd8448eb211c80319c"
	producerSpan  = "b7ad6b7169203331"
)

var allTopics = []string{"decision-logs", "decision-logs-parking", "decision-logs-dlq", "decision-logs-parking-dlq"}

// stage is a Kafka and a Postgres in memory, with a collector beside them.
type stage struct {
	t         *testing.T
	kafka     *kafkatest.Cluster
	db        *pgmodel.Server
	collector *tracingtest.Collector
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, kafka: kafkatest.New(t, kfake.SeedTopics(1, allTopics...)), db: pgmodel.New(pgmodel.Config{}), collector: tracingtest.New(t)}
	t.Cleanup(s.db.Close)
	return s
}

// start runs a program with real parts.
func (s *stage) start(name config.Program, otel []string, env ...string) *world {
	s.t.Helper()
	set := settings(s.t, name, append([]string{
		"DOCKET_DATABASE_URL=postgres://docket:" + passwordMarker + "@db.example:5432/docket?sslmode=disable", "DOCKET_KAFKA_BROKERS=" + s.kafka.Brokers()[0],
		"DOCKET_AUTO_MIGRATE=false", "DOCKET_PARTITIONS_AHEAD=0", "DOCKET_RETRY_PAUSES=1ms", "DOCKET_PARK_BATCHES=0", "DOCKET_PARKING_BACKOFF=1ms", "DOCKET_BATCH_MAX_WAIT=20ms",
		"DOCKET_SHUTDOWN_TIMEOUT=1m",
	}, env...)...)
	var log output.Buffer
	p, err := New(name, set, zerolog.New(&log), prometheus.NewRegistry(), Options{Environ: otel, DialDatabase: s.db.Dial})
	if err != nil {
		s.t.Fatal(err)
	}
	w := &world{t: s.t, program: p, log: &log, ended: make(chan error, 1)}
	w.run()
	return w
}

// halt stops a program and closes it, which sends the last spans.
func (w *world) halt() {
	w.t.Helper()
	w.stop()
	if err := w.end(); err != nil {
		w.t.Error(err)
	}
	w.program.Close()
}

func traced(id string) *kgo.Record {
	return &kgo.Record{
		Topic: "decision-logs", Key: []byte(keyMarker + id), Timestamp: time.Now(),
		Value: fmt.Appendf(nil, `{"decision_id":"%s","timestamp":"2026-11-21T03:00:00Z","path":"a/b","note":"%s"}`, id, payloadMarker),
		Headers: []kgo.RecordHeader{
			{Key: "traceparent", Value: []byte("00-" + producerTrace + "-" + producerSpan + "-01")},
			{Key: "x-traceparent", Value: []byte("00-11111111111111111111111111111111-2222222222222222-01")}, // not ours: forged
			{Key: "theirs", Value: []byte(headerMarker)},
		},
	}
}

func headersNamed(r *kgo.Record, name string) (values []string) {
	for _, h := range r.Headers {
		if h.Key == name {
			values = append(values, string(h.Value))
		}
	}
	return values
}

func TestTrace_OneFromProducerToRow(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	otel := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=" + tokenMarker, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"}
	heal := s.db.Inject(pgmodel.Fault{Point: pgmodel.Insert, SQLSTATE: "40001", Count: -1}) // its text quotes a row
	s.kafka.Produce(t, traced("d1"))

	w := s.start(config.Consumer, otel)
	w.until("the record is parked and committed", func() bool { return s.kafka.Committed(t, "docket", "decision-logs")[0] == 1 })
	w.halt()
	heal()
	parked := s.kafka.ReadAll(t, "decision-logs-parking")
	if len(parked) != 1 {
		t.Fatalf("%d parked", len(parked))
	}
	ours := headersNamed(parked[0], "x-traceparent")
	if len(ours) != 1 || !strings.HasPrefix(ours[0], "00-"+producerTrace+"-") || !strings.HasSuffix(ours[0], "-01") {
		t.Errorf("x-traceparent %q is not in the producer's trace, once", ours)
	}
	if theirs := headersNamed(parked[0], "traceparent"); !slices.Equal(theirs, headersNamed(traced(""), "traceparent")) {
		t.Errorf("traceparent %q is not as it came", theirs)
	}

	r := s.start(config.Replayer, otel)
	r.until("the record is replayed", func() bool { return s.kafka.Committed(t, "docket-parking", "decision-logs-parking")[0] == 1 })
	r.halt()
	if n := len(s.db.Rows()); n != 1 {
		t.Fatalf("%d rows", n)
	}
	s.told(parked[0])
	s.untold()
	for _, h := range s.collector.Headers() {
		if h.Get("Api-Key") != tokenMarker {
			t.Error("the collector was not sent the headers that it wants")
		}
	}
}

// one is the only span of its kind.
func (s *stage) one(service, name string) tracingtest.Span {
	s.t.Helper()
	return s.only(service, name, s.collector.Spans(service, name))
}

func (s *stage) only(service, kind string, found []tracingtest.Span) tracingtest.Span {
	s.t.Helper()
	if len(found) != 1 {
		s.t.Fatalf("%d spans %s of %s, want one", len(found), kind, service)
	}
	return found[0]
}

// carried is the only batch of a service and its only record.
func (s *stage) carried(service string) (batch, record tracingtest.Span) {
	s.t.Helper()
	return s.only(service, "batch", s.collector.Batches(service)), s.only(service, "record", s.collector.Records(service))
}

// messaging says that spans have the name, the kind and the attributes that the semantic conventions demand.
func (s *stage) messaging(kind tracepb.Span_SpanKind, operation, operationType, topic, group string, spans ...tracingtest.Span) {
	s.t.Helper()
	want := map[string]any{
		"messaging.system": "kafka", "messaging.operation.name": operation, "messaging.operation.type": operationType,
		"messaging.destination.name": topic, "messaging.destination.partition.id": "0", "messaging.consumer.group.name": any(nil),
	}
	if group != "" {
		want["messaging.consumer.group.name"] = group
	}
	for _, span := range spans {
		if span.Name != operation+" "+topic || span.Kind != kind {
			s.t.Errorf("span %q of kind %s, want %q of %s", span.Name, span.Kind, operation+" "+topic, kind)
		}
		for key, value := range want {
			if got := span.Attribute(key); got != value {
				s.t.Errorf("%s: %s is %v, want %v", span.Name, key, got, value)
			}
		}
	}
}

// told says what the collector has to know of a record that was parked and replayed.
func (s *stage) told(parked *kgo.Record) {
	t := s.t
	t.Helper()
	failed, went := s.carried("docket-consumer")
	s.messaging(tracepb.Span_SPAN_KIND_CONSUMER, "process", "process", "decision-logs", "docket", failed, went)
	if failed.Parent() != "" || failed.Trace() == producerTrace || !failed.LinksTo(producerTrace, producerSpan) {
		t.Error("the batch is not a trace of its own with a link to the producer's")
	}
	if failed.Attribute("docket.homes.parked") != int64(1) || failed.Attribute("docket.outcome") != "homed" || failed.Attribute("docket.first_offset") != int64(0) {
		t.Errorf("the batch says %v", failed.Attributes)
	}
	if went.Trace() != producerTrace || went.Parent() != producerSpan || !went.LinksTo(failed.Trace(), failed.ID()) {
		t.Error("the record is not in the producer's trace with a link to the batch that failed")
	}
	if went.Attribute("docket.home") != "parked" || went.Attribute("docket.code") != "40001" || went.Attribute("error.type") != "40001" || went.Attribute("docket.dead_letter_id") != headersNamed(parked, "x-dead-letter-id")[0] {
		t.Errorf("the record says %v", went.Attributes)
	}
	if at := headersNamed(parked, "x-traceparent")[0]; at != "00-"+producerTrace+"-"+went.ID()+"-01" {
		t.Errorf("x-traceparent is %s and not the record's span %s", at, went.ID())
	}
	sent := s.one("docket-consumer", "send decision-logs-parking")
	s.messaging(tracepb.Span_SPAN_KIND_CLIENT, "send", "send", "decision-logs-parking", "", sent)
	if sent.Trace() != producerTrace || sent.Parent() != went.ID() || !sent.LinksTo(went.Trace(), went.ID()) || sent.Attribute("error.type") != nil {
		t.Errorf("the send is not below the record, or says %v", sent)
	}
	for _, store := range s.collector.Spans("docket-consumer", "docket.store") {
		if store.Trace() != failed.Trace() || store.Parent() != failed.ID() || store.Attribute("docket.code") != "40001" || store.Attribute("error.type") != "40001" || store.Status.Message != "40001" {
			t.Errorf("a write says %v %v", store.Attributes, store.Status)
		}
	}
	s.below("docket-consumer", failed, `copy_from "decision_logs"`, "docket.store", "40001")
	commit := s.one("docket-consumer", "commit decision-logs")
	s.messaging(tracepb.Span_SPAN_KIND_CLIENT, "commit", "settle", "decision-logs", "docket", commit)
	if commit.Parent() != failed.ID() || commit.Attribute("error.type") != nil {
		t.Errorf("the commit is not below the batch, or says %v", commit)
	}

	again, back := s.carried("docket-parking-replayer")
	s.messaging(tracepb.Span_SPAN_KIND_CONSUMER, "process", "process", "decision-logs-parking", "docket-parking", again, back)
	if back.Trace() != producerTrace || back.Parent() != went.ID() || !back.LinksTo(again.Trace(), again.ID()) || back.Attribute("docket.home") != "row" || back.Attribute("error.type") != nil {
		t.Errorf("the replay does not go on where the record was parked: %v", back)
	}
	if !again.LinksTo(producerTrace, went.ID()) || again.Attribute("docket.homes.row") != int64(1) {
		t.Errorf("the replay's batch says %v", again)
	}
	s.below("docket-parking-replayer", again, "COMMIT", "docket.store", "")
}

// below checks that a statement is two levels below the batch, and its code.
func (s *stage) below(service string, batch tracingtest.Span, name, under, code string) {
	s.t.Helper()
	statements := s.collector.Spans(service, name)
	if len(statements) == 0 {
		s.t.Errorf("no span %s of %s", name, service)
	}
	for _, st := range statements {
		i := slices.IndexFunc(s.collector.Spans(service, under), func(u tracingtest.Span) bool { return u.ID() == st.Parent() })
		if i < 0 || st.Trace() != batch.Trace() {
			s.t.Errorf("%s is not below %s", name, under)
		}
		if got := st.Attribute("pgx.sql_state"); code != "" && got != code {
			s.t.Errorf("%s says %v, want %s", name, got, code)
		}
	}
}

// untold looks for what no span may hold, in everything that was sent.
func (s *stage) untold() {
	s.t.Helper()
	for _, marker := range []string{payloadMarker, keyMarker, headerMarker, passwordMarker, tokenMarker, "db.example", "Failing row", "could not serialize"} {
		if s.collector.Holds(marker) {
			s.t.Errorf("a span holds %q", marker)
		}
	}
}

func TestTrace_RefusedRecordHasOnlyItsCode(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.db.Constrain(pgmodel.Constraint{
		Name: "no_d2", Columns: []string{"decision_id"},
		Refuses: func(r pgmodel.Row) bool { return r.DecisionID == "d2" },
	})
	s.kafka.Produce(t, traced("d1"), traced("d2"), traced("d3"), &kgo.Record{Topic: "decision-logs", Value: []byte("{" + payloadMarker)})
	w := s.start(config.Consumer, []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + s.collector.URL + "/v1/traces", "OTEL_SERVICE_NAME=mine"})
	w.until("all are committed", func() bool { return s.kafka.Committed(t, "docket", "decision-logs")[0] == 4 })
	w.halt()
	records := s.collector.Records("mine")
	codes := map[any]string{}
	for _, r := range records {
		codes[r.Attribute("docket.code")] = r.Trace()
	}
	if len(records) != 2 || codes["23514"] != producerTrace || codes["syntax"] == "" || codes["syntax"] == producerTrace {
		t.Errorf("spans of records %v", codes)
	}
	if batch := s.collector.Batches("mine"); len(batch) == 0 || len(batch[0].Links) != 1 {
		t.Errorf("%d batches; the first links to a trace more than once, or not at all", len(batch))
	}
	s.untold()
}

// Of a batch that forwards many records, most get no span of their own. They continue the batch's trace.
func TestTrace_ManyForwardedAreFewSpans(t *testing.T) {
	t.Parallel()
	const n = 2000
	s := newStage(t)
	values := make([]string, n)
	for i := range values {
		values[i] = "{" + payloadMarker
	}
	s.kafka.Values(t, "decision-logs", 0, values...)
	began := time.Now()
	w := s.start(config.Consumer, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector.URL}, "DOCKET_BATCH_MAX_WAIT=1s")
	w.until("all are committed", func() bool { return s.kafka.Committed(t, "docket", "decision-logs")[0] == n })
	w.halt()
	batches, took := len(s.collector.Batches("")), time.Since(began)
	// 128 records of a batch and a few of the batch itself, and of what is published 256 at once and 128 a second.
	most := 150*batches + 256 + int(128*took.Seconds())
	if all := len(s.collector.Spans("", "")); batches == 0 || all > most || all < 100 {
		t.Errorf("%d spans of %d batches in %v, more than %d or too few", all, batches, took, most)
	}
	for _, r := range s.kafka.ReadAll(t, "decision-logs-dlq") {
		if len(headersNamed(r, "x-traceparent")) != 1 {
			t.Fatal("a record has no trace to go on in")
		}
	}
	s.untold()
}

func TestTrace_OffWithoutAnEndpoint(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.kafka.Produce(t, traced("d1"), &kgo.Record{Topic: "decision-logs", Value: []byte("{")})
	w := s.start(config.Consumer, []string{"OTEL_SERVICE_NAME=mine", "OTEL_TRACES_SAMPLER=always_on"})
	w.until("all are committed", func() bool { return s.kafka.Committed(t, "docket", "decision-logs")[0] == 2 })
	w.halt()
	if w.program.tracing != nil {
		t.Error("there is tracing")
	}
	for _, r := range s.kafka.ReadAll(t, "decision-logs-dlq") {
		if got := headersNamed(r, "x-traceparent"); len(got) != 0 {
			t.Errorf("x-traceparent %q is written", got)
		}
	}
}

// A collector that takes connections and never answers costs no commit any time, and the end no more than a moment.
func TestTrace_NobodyWaitsForTheCollector(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 1000), make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer mute.Close()
	defer close(release)
	s := newStage(t)
	for name, endpoint := range map[string]string{"hangs": mute.URL, "is away": "http://" + unused(t)} {
		group := "of-" + strings.ReplaceAll(name, " ", "-")
		// Nothing but the end itself stops waiting for it within the time that is looked for below.
		w := s.start(config.Consumer, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=60000"}, "DOCKET_KAFKA_GROUP="+group)
		for i := range 20 {
			s.kafka.Produce(t, traced(fmt.Sprintf("%s-%d", group, i)))
		}
		from := time.Now()
		w.until("all are committed", func() bool {
			at := s.kafka.Committed(t, group, "decision-logs")[0]
			return at >= 20 && at%20 == 0
		})
		t.Logf("a collector that %s: committed after %v", name, time.Since(from))
		if name == "hangs" {
			<-asked
		}
		w.stop()
		if err := w.end(); err != nil {
			t.Error(err)
		}
		stopped := time.Now()
		w.program.Close()
		if took := time.Since(stopped); took > 30*time.Second {
			t.Errorf("with a collector that %s closing takes %v", name, took)
		}
	}
}

func unused(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
