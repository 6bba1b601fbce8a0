package tracing

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"docket/internal/collector"
	"docket/internal/consumer/pipeline"
	"docket/internal/record/home"
	"docket/internal/testkit/tracingtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongVariablesAreNamedAndStopNobody(t *testing.T) {
	t.Parallel()
	const secret = "marker-of-a-secret"
	on := "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"
	for name, c := range map[string]struct {
		environ []string
		wrong   []string // variables
		on      bool
	}{
		"nothing":            {nil, nil, false},
		"no endpoint":        {[]string{"OTEL_SERVICE_NAME=x", "OTEL_TRACES_SAMPLER=" + secret}, nil, false},
		"an endpoint":        {[]string{on}, nil, true},
		"one of traces":      {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c/x"}, nil, true},
		"disabled":           {[]string{on, "OTEL_SDK_DISABLED=true"}, nil, false},
		"no exporter":        {[]string{on, "OTEL_TRACES_EXPORTER=none"}, nil, false},
		"another exporter":   {[]string{on, "OTEL_TRACES_EXPORTER=" + secret}, []string{"OTEL_TRACES_EXPORTER"}, false},
		"no URL":             {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + secret + ":4318"}, []string{"OTEL_EXPORTER_OTLP_ENDPOINT"}, false},
		"a password in it":   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://u:" + secret + "@127.0.0.1:1"}, []string{"OTEL_EXPORTER_OTLP_ENDPOINT"}, true},
		"bad headers":        {[]string{on, "OTEL_EXPORTER_OTLP_HEADERS=a=b," + secret}, []string{"OTEL_EXPORTER_OTLP_HEADERS"}, true},
		"a bad timeout":      {[]string{on, "OTEL_EXPORTER_OTLP_TIMEOUT=10s"}, []string{"OTEL_EXPORTER_OTLP_TIMEOUT"}, true},
		"a bad compression":  {[]string{on, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=zip"}, []string{"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION"}, true},
		"no certificates":    {[]string{on, "OTEL_EXPORTER_OTLP_CERTIFICATE=/" + secret}, []string{"OTEL_EXPORTER_OTLP_CERTIFICATE"}, true},
		"half a key pair":    {[]string{on, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/" + secret}, []string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"}, true},
		"another protocol":   {[]string{on, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, []string{"OTEL_EXPORTER_OTLP_PROTOCOL"}, true},
		"a bad sampler":      {[]string{on, "OTEL_TRACES_SAMPLER=" + secret}, []string{"OTEL_TRACES_SAMPLER"}, true},
		"a bad ratio":        {[]string{on, "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=2"}, []string{"OTEL_TRACES_SAMPLER_ARG"}, true},
		"no number":          {[]string{on, "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=NaN"}, []string{"OTEL_TRACES_SAMPLER_ARG"}, true},
		"a bad resource":     {[]string{on, "OTEL_RESOURCE_ATTRIBUTES=" + secret}, []string{"OTEL_RESOURCE_ATTRIBUTES"}, true},
		"neither true nor":   {[]string{on, "OTEL_SDK_DISABLED=maybe"}, []string{"OTEL_SDK_DISABLED"}, true},
		"all that is needed": {[]string{on, "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1", "OTEL_RESOURCE_ATTRIBUTES=a=b%20c"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			tr := Open(c.environ, Config{Program: "consumer"}, zerolog.New(&log))
			if (tr != nil) != c.on {
				t.Errorf("on: %v", tr != nil)
			}
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
			var wrong []string
			for _, w := range read(c.environ).complaints() {
				wrong = append(wrong, w.Variable)
			}
			if !slices.Equal(wrong, c.wrong) || strings.Count(log.String(), "\n") != len(c.wrong) {
				t.Errorf("complaints about %v, want %v; log %s", wrong, c.wrong, log.String())
			}
			if strings.Contains(log.String(), secret) {
				t.Errorf("a value shows: %s", log.String())
			}
		})
	}
}

// complaints are what is wrong with the variables.
func (e *environment) complaints() []Wrong {
	e.settings()
	return e.wrong
}

func TestCollectorThatRefusesIsOneLine(t *testing.T) {
	t.Parallel()
	c := tracingtest.New(t)
	c.Answer(http.StatusForbidden)
	var log bytes.Buffer
	tr := Open([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_HEADERS=k=marker-of-a-token"}, Config{Program: "consumer"}, zerolog.New(&log))
	for range 3 * mostTogether {
		_, b := tr.Batch(context.Background(), time.Now(), nil)
		b.End(nil)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), `"reason":"refused"`) || strings.Contains(log.String(), "marker") || strings.Contains(log.String(), "not now") {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

func records(n int) []*kgo.Record {
	all := make([]*kgo.Record, n)
	for i := range all {
		all[i] = &kgo.Record{Topic: "t", Offset: int64(i), Headers: []kgo.RecordHeader{
			{Key: "traceparent", Value: fmt.Appendf(nil, "00-%032x-%016x-01", i+1, i+1)},
		}}
	}
	return all
}

func TestLinksOfABatchAreBoundedAndWhatIsNoTraceparentIsNone(t *testing.T) {
	t.Parallel()
	c := tracingtest.New(t)
	tr := Open([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}, Config{Program: "consumer"}, zerolog.Nop())
	rs := records(1000)
	rs[0].Headers[0].Value = []byte("00-zz")
	rs[1].Headers[0].Value = bytes.Repeat([]byte("x"), traceparentBytes)
	_, b := tr.Batch(context.Background(), time.Now(), rs)
	b.End(nil)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if spans := c.Batches("docket-consumer"); len(spans) != 1 || len(spans[0].Links) != mostLinks {
		t.Errorf("%d spans", len(spans))
	}
}

func TestUploadOfDeadLettersIsFewSpans(t *testing.T) {
	t.Parallel()
	c := tracingtest.New(t)
	tr := Open([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL}, Config{Program: "collector", DeadLetters: "letters"}, zerolog.Nop())
	u := tr.Upload("")
	own := map[string]bool{}
	for i := range 1000 {
		own[u.Letter(i, "syntax")] = true
		u.Dead(i, fmt.Sprint(i))
	}
	if u.Letter(0, "syntax") == u.Traceparent() || len(own) != mostRecords+1 || !own[u.Traceparent()] {
		t.Errorf("%d traces for 1000 letters; the first has its own: %v", len(own), u.Letter(0, "syntax") != u.Traceparent())
	}
	u.End(collector.Ended{Status: 200, Dead: 1000})
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Spans("docket-collector", "create letters")); n != mostRecords {
		t.Errorf("%d spans of letters", n)
	}
}

// What following an upload costs, whatever it holds.
func BenchmarkUpload(b *testing.B) {
	tr := Open([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}, Config{Program: "collector"}, zerolog.Nop())
	defer func() { _ = tr.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		u := tr.Upload("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		u.Publishing(5)(nil)
		u.End(collector.Ended{Status: 200, Topic: 5})
	}
}

// What following a batch of 5,000 records costs, with a trace in each of them and in none.
func BenchmarkBatch(b *testing.B) {
	for name, rs := range map[string][]*kgo.Record{"traced": records(5000), "bare": make([]*kgo.Record, 5000)} {
		for i := range rs {
			if rs[i] == nil {
				rs[i] = &kgo.Record{Topic: "t", Offset: int64(i)}
			}
		}
		b.Run(name, func(b *testing.B) {
			tr := Open([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}, Config{Program: "consumer"}, zerolog.Nop())
			defer func() { _ = tr.Close() }()
			report := pipeline.Report{Decisions: func(yield func(pipeline.Decision) bool) {
				for i := range rs {
					if !yield(pipeline.Decision{Home: home.Row, Offset: int64(i)}) {
						return
					}
				}
			}}
			b.ReportAllocs()
			for b.Loop() {
				_, t := tr.Batch(context.Background(), time.Now(), rs)
				t.Homed(report)
				t.End(nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5000, "ns/record")
		})
	}
}
