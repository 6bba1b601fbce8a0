package kafka_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/record/envelope"
	"docket/internal/testkit/kafkatest"
)

// parkedRecords makes as many parked records as a batch forwards at a time.
func parkedRecords(n int) []*kgo.Record {
	var s envelope.Sealer
	s.Expect(n)
	out := make([]*kgo.Record, n)
	cause := envelope.Cause{Kind: envelope.Transient, Code: "08006", Message: "connection_failure"}
	for i, r := range forwarded(n) {
		r.Value = make([]byte, 680)
		e := envelope.Open(r)
		out[i] = s.Seal(&e, &cause, envelope.Sealed{Topic: dlq, Value: r.Value, At: time.Now(), NotBefore: time.Now(), Consumer: "docket/one"})
	}
	return out
}

func publishAll(t testing.TB, publish func(context.Context, []*kgo.Record) []error, records []*kgo.Record) {
	t.Helper()
	for i, err := range publish(t.Context(), records) {
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
}

// TestPublish_FewRequests counts requests. One for each record would be 1000.
func TestPublish_FewRequests(t *testing.T) {
	t.Parallel()
	const n, partitions, most = 1000, 8, 200 // records that are buffered during a request share the next one
	c := kafkatest.New(t, kfake.SeedTopics(partitions, dlq))
	p := publisher(t, c, kafkatest.Timeout)
	records := parkedRecords(n)
	publishAll(t, p.Publish, records) // connects
	var requests atomic.Int64
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		requests.Add(1)
		return nil, nil, false
	})
	publishAll(t, p.Publish, records)
	if got := requests.Load(); got == 0 || got > most {
		t.Errorf("%d requests for %d records to %d partitions, want %d at most", got, n, partitions, most)
	}
}

// BenchmarkPublish has the broker in the same process, so its work is in every figure.
func BenchmarkPublish(b *testing.B) {
	const n = 1000
	b.ReportAllocs()
	c := kafkatest.New(b, kfake.SeedTopics(8, dlq))
	p := publisher(b, c, 10*time.Second)
	records := parkedRecords(n)
	for b.Loop() {
		publishAll(b, p.Publish, records)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}

// TestPublish_SetsTooLargeForTheTopic counts requests to a topic that takes a part of a client's batch alone. One for each
// record would be 2000, one after the other: an upload of so many would never be in time.
func TestPublish_SetsTooLargeForTheTopic(t *testing.T) {
	t.Parallel()
	const n, size, most = 2000, 500, 400 // a set of the topic has about 30 of the records
	c := kafkatest.New(t)
	if err := c.CreateTopic(dlq, 1, map[string]string{"max.message.bytes": "20000"}); err != nil {
		t.Fatal(err)
	}
	p := publisher(t, c, kafkatest.Timeout)
	records, all := forwarded(n), noise(n*size)
	for i, r := range records {
		r.Value = all[i*size : (i+1)*size]
	}
	records[1717].Value = noise(30_000)
	publishAll(t, p.Publish, records[:1]) // connects
	var requests atomic.Int64
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		requests.Add(1)
		return nil, nil, false
	})
	for i, err := range p.Publish(t.Context(), records) {
		if (i == 1717) != errors.Is(err, kerr.MessageTooLarge) || (i != 1717) != (err == nil) {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	if got := requests.Load(); got > most {
		t.Errorf("%d requests for %d records, want %d at most", got, n, most)
	}
	if got := len(c.ReadAll(t, dlq)); got != n {
		t.Errorf("%d records are there, want %d", got, n)
	}
}
