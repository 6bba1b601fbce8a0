package bench

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/collector"
	"docket/internal/collector/routing"
	"docket/internal/consumer/lanes"
	"docket/internal/record/redact"
)

// taker acknowledges everything at once.
type taker struct{}

func (taker) Publish(_ context.Context, records []*kgo.Record) []error {
	return make([]error, len(records))
}

// BenchmarkHandler is what the collector does with an upload beside HTTP and Kafka.
func BenchmarkHandler(b *testing.B) {
	logs, err := Real(1, 20_000)
	if err != nil {
		b.Fatal(err)
	}
	rules, err := redact.Parse([]string{"/metrics", "/input/password"}, []string{"/input/user", "/labels/version"})
	if err != nil {
		b.Fatal(err)
	}
	urgent, _ := routing.ParseRules("verdict=denied,error;path=admin/*;label:tenant=acme")
	shares, _ := routing.ParseShares("label:id=1000000/s;label:tenant=1000000/s")
	routes := routing.Config{Rules: urgent, Shares: shares, Urgent: true, Bulk: true}
	for _, c := range []struct {
		name  string
		each  int
		rules redact.Rules
		lanes routing.Config
	}{{name: "32KiB"}, {name: "32KiB,redacting", rules: rules}, {name: "32KiB,lanes", lanes: routes}, {name: "5", each: collectSmall}} {
		uploads, err := Uploads(logs, OPAUpload, c.each)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			handler, err := collector.New(collector.Config{
				Topic: "logs", DLQTopic: "dlq", Consumer: "bench", Redact: c.rules, Routing: c.lanes, Lanes: map[lanes.Lane]string{lanes.Urgent: "urgent", lanes.Bulk: "bulk"}, UploadBytes: 8 << 20, InflatedBytes: 64 << 20, Memory: 256 << 20, Uploads: 64,
				BodyTimeout: time.Second, PublishTimeout: time.Second, RetryAfter: time.Second,
			}, taker{}, nil, zerolog.Nop())
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for i := 0; b.Loop(); i++ {
				u := uploads[i%len(uploads)]
				r := httptest.NewRequest(http.MethodPost, "/logs", bytes.NewReader(u.Body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Content-Encoding", "gzip")
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
				n += u.Decisions
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/decision")
		})
	}
}
