package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// groups makes each reading of the topic one from its start.
var groups atomic.Int64

// BenchmarkRelease reads records from brokers in this process, with and without the reuse of their memory. The brokers
// cost the same in both.
func BenchmarkRelease(b *testing.B) {
	const n = 100_000
	c := kafkatest.New(b, kfake.SeedTopics(1, topic))
	client := c.Client(b, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.MaxBufferedRecords(n))
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"decision_id":"%d","input":"%s"}`, i, strings.Repeat(fmt.Sprint(i%977), 200))}
	}
	if err := client.ProduceSync(b.Context(), records...).FirstErr(); err != nil {
		b.Fatal(err)
	}
	client.Close()
	for name, released := range map[string]bool{"released": true, "left": false} {
		b.Run(name, func(b *testing.B) {
			sc := small()
			sc.BatchRecords = 5000
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				sc.Group = fmt.Sprint("group ", groups.Add(1))
				var seen atomic.Int64
				done := make(chan struct{})
				m := run(b, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
					for {
						batch, err := a.Fetch(ctx)
						if err != nil {
							return err
						}
						read := int64(len(batch.Records()))
						settled := settle(batch)
						if released {
							batch.Release()
						}
						if err := a.Commit(ctx, settled); err != nil {
							return err
						}
						if seen.Add(read) == n {
							close(done)
						}
					}
				})
				<-done
				if err := m.end(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N)/n, "cpu-ns/record")
		})
	}
}

// cpu is the time of all processors that this process took.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
