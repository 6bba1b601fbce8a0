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
	for _, c := range []struct {
		name  string
		each  int
		rules redact.Rules
	}{{name: "32KiB"}, {name: "32KiB,redacting", rules: rules}, {name: "5", each: collectSmall}} {
		uploads, err := Uploads(logs, OPAUpload, c.each)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			handler, err := collector.New(collector.Config{
				Topic: "logs", DLQTopic: "dlq", Consumer: "bench", Redact: c.rules, UploadBytes: 8 << 20, InflatedBytes: 64 << 20, Memory: 256 << 20, Uploads: 64,
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
