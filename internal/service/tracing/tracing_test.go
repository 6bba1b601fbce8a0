package tracing

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
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

func TestExport_RefusalIsOneLine(t *testing.T) {
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

func TestBatch_LinksAreBounded(t *testing.T) {
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

func TestUpload_DeadLettersAreFewSpans(t *testing.T) {
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

// BenchmarkUpload measures the spans of an upload, whatever it holds.
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

// BenchmarkBatch measures the spans of a batch of 5,000 records, with a trace in each of them and in none.
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
			report := pipeline.HomedBatch{Decisions: func(yield func(pipeline.Decision) bool) {
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
