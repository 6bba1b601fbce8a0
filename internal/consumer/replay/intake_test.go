package replay

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// stream is a partition of the parking topic that delivers the same due records again and again.
type stream struct {
	*log
	takes int
}

func (s *stream) Take(_ context.Context, records int, _ int64, _ time.Duration) ([]*kgo.Record, error) {
	s.takes++
	n := min(records, len(s.records))
	made, out := make([]kgo.Record, n), make([]*kgo.Record, n)
	for i, r := range s.records[:n] {
		made[i] = kgo.Record{Topic: r.Topic, Offset: s.end, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
		out[i] = &made[i]
		s.end++
	}
	return out, nil
}

// parkedRecord is a record as the consumer parks it.
func parkedRecord() *kgo.Record {
	now := time.Now()
	read := &kgo.Record{Topic: "decision-logs", Offset: 12345, Timestamp: now, Key: []byte("subject-12345"), Value: make([]byte, 680)}
	r := envelope.Open(read).Seal(envelope.Cause{Kind: envelope.Transient, Code: "08006", Message: "connection_failure"},
		envelope.Sealed{Topic: "parking", Value: read.Value, At: now, NotBefore: now.Add(-time.Second), Consumer: "docket/one"})
	return r
}

// intake returns a func that lets a batch of n due records through the window.
func intake(t testing.TB, n int) (s *stream, pass func()) {
	t.Helper()
	s = &stream{log: newLog()}
	one := parkedRecord()
	for range n {
		s.records = append(s.records, one)
	}
	s.end = 0
	w := New(Config{Lookahead: 2 * n, Weigh: weight, MaxBackoff: time.Hour, BatchRecords: n, BatchBytes: 1 << 30}, s)
	return s, func() {
		if err := w.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, err := w.Fetch(t.Context())
		if err != nil || len(b.Records()) != n {
			t.Fatalf("let through %d of %d, %v", len(b.Records()), n, err)
		}
		for i := range b.Records() {
			b.Carries(i, 1)[0].Give(home.Row)
		}
		if settled, err := b.Settle(); err != nil || settled.Offset() != s.end {
			t.Fatalf("settled %d of %d, %v", settled.Offset(), s.end, err)
		}
	}
}

//nolint:paralleltest // it measures what is the whole process's
func TestWindow_CostOfADueRecord(t *testing.T) {
	const n, most = 2000, 0.05 // for a record
	s, pass := intake(t, n)
	pass()
	if s.takes != 1 {
		t.Errorf("the gate asked %d times for one batch", s.takes)
	}
	if each := testing.AllocsPerRun(10, pass) / n; each > most {
		t.Errorf("%.3f allocations for a record that passes, want %v at most", each, most)
	}
}

func BenchmarkIntake(b *testing.B) {
	const n = 5000
	b.ReportAllocs()
	_, pass := intake(b, n)
	for b.Loop() {
		pass()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
