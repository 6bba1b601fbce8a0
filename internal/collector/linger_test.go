package collector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	room "docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// BenchmarkSmallUploads takes uploads of five decisions from sixteen senders at once.
func BenchmarkSmallUploads(b *testing.B) {
	for _, linger := range []time.Duration{0, time.Millisecond} {
		b.Run(linger.String(), func(b *testing.B) {
			c := kafkatest.New(b, kfake.SeedTopics(8, logs), kfake.SeedTopics(1, dlq))
			p, err := room.NewPublisher(room.Config{Brokers: c.Brokers()}, room.PublisherConfig{Linger: linger}, zerolog.Nop(), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(p.Close)
			w := newWorld(b)
			w.publisher = p
			var parts []string
			for i := range 5 {
				parts = append(parts, strings.Replace(good(fmt.Sprint("decision-", i)), "4711", fmt.Sprint(4711+i), 1))
			}
			body := gz("[" + strings.Join(parts, ",") + "]")
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if a := w.postAlone(b, body); a != 200 {
						b.Error(a)
					}
				}
			})
			b.ReportMetric(float64(b.N)*5/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}
