package collector

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	logs = "decision-logs"
	dlq  = "decision-logs-dlq"
)

// kafka is a publisher that keeps what it acknowledges.
type kafka struct {
	answer func(r *kgo.Record) error // nil: it takes everything
	before func(n int)               // each call, with how many records

	mu   sync.Mutex
	kept []*kgo.Record
}

func (k *kafka) Publish(_ context.Context, records []*kgo.Record) []error {
	if k.before != nil {
		k.before(len(records))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	errs := make([]error, len(records))
	for i, r := range records {
		if k.answer != nil {
			if errs[i] = k.answer(r); errs[i] != nil {
				continue
			}
		}
		c := *r // the memory behind it is the collector's own again afterwards
		c.Key, c.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		k.kept = append(k.kept, &c)
	}
	return errs
}

func (k *kafka) in(topic string) []*kgo.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []*kgo.Record
	for _, r := range k.kept {
		if r.Topic == topic {
			found = append(found, r)
		}
	}
	return found
}

type world struct {
	*Collector
	kafka *kafka
	log   *lines
	reg   *prometheus.Registry
}

// lines is a log that can be written while it is read.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.String()
}

func newWorld(t testing.TB, with ...func(*Config)) *world {
	t.Helper()
	w := &world{kafka: &kafka{}, log: &lines{}, reg: prometheus.NewPedanticRegistry()}
	cfg := Config{Topic: logs, DLQTopic: dlq, Consumer: "docket/one", UploadBytes: 1 << 20, InflatedBytes: 8 << 20, Memory: 64 << 20,
		Uploads: 16, BodyTimeout: 5 * time.Second, PublishTimeout: 5 * time.Second, RetryAfter: 1500 * time.Millisecond}
	for _, change := range with {
		change(&cfg)
	}
	var err error
	if w.Collector, err = New(cfg, w.kafka, w.reg, zerolog.New(w.log)); err != nil {
		t.Fatal(err)
	}
	return w
}

// posted is a request as OPA makes it.
func posted(ctx context.Context, path string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, body)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// post uploads and returns the answer. However it ends, nothing of the memory stays taken.
func (w *world) post(t testing.TB, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := posted(t.Context(), "/logs", strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Content-Type" {
			r.Header.Del(headers[i])
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	a := httptest.NewRecorder()
	w.ServeHTTP(a, r)
	if used := w.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of memory stay taken", used)
	}
	return a
}

// postAlone uploads while others do.
func (w *world) postAlone(t testing.TB, body string) int {
	t.Helper()
	a := httptest.NewRecorder()
	w.ServeHTTP(a, posted(t.Context(), "/logs", strings.NewReader(body)))
	return a.Code
}

func problem(t testing.TB, a *httptest.ResponseRecorder) answer {
	t.Helper()
	var p answer
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
		t.Fatalf("%d without a problem: %q", a.Code, a.Body)
	}
	return p
}

func gz(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

func good(id string) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-03-01T12:00:00Z","requested_by":"10.0.0.1:4711","path":"a/b","input":{"password":"hush"},"result":true}`, id)
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// metric is the value of a counter or gauge, by the values of its labels.
func (w *world) metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			same := len(m.GetLabel()) == len(labels)
			for i, l := range m.GetLabel() {
				same = same && l.GetValue() == labels[i]
			}
			if same {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s %v", name, labels)
	return 0
}
