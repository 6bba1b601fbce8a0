package desk

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
)

// BenchmarkLookup measures the part of a look-up by id that Kafka takes: with a client for each look, with one for all,
// and without a question because nothing waits.
func BenchmarkLookup(b *testing.B) {
	s, _, err := config.LoadWith(config.Desk, nowhere("DOCKET_LANES=urgent,bulk"), Judges())
	if err != nil {
		b.Fatal(err)
	}
	cluster := kafkatest.New(b, kfake.SeedTopics(4, append(s.SourceTopics(), s.KafkaParkingTopic, s.KafkaDLQTopic, s.KafkaParkingDLQTopic)...))
	s.KafkaBrokers = cluster.Brokers()
	open := func() *kafka.Reader {
		brokers, err := app.Kafka(s, "bench")
		if err != nil {
			b.Fatal(err)
		}
		r, err := kafka.NewReader(brokers)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	one := open()
	defer one.Close()
	look := func(topics func() (lookup.Topics, func(), error)) *lookup.Look {
		return &lookup.Look{Settings: s, Topics: topics, Rows: func(context.Context, string) ([]reader.Decision, error) { return nil, nil }}
	}
	each := look(func() (lookup.Topics, func(), error) { r := open(); return r, r.Close, nil })
	shared := look(func() (lookup.Topics, func(), error) { return one, func() {}, nil })
	shared.Quiet = func() lookup.Quiet { return lookup.Quiet{Until: time.Now(), Nothing: true} }
	b.Run("a client for each", func(b *testing.B) {
		for b.Loop() {
			each.Find(b.Context(), "d")
		}
	})
	b.Run("one client", func(b *testing.B) {
		for b.Loop() {
			shared.Find(b.Context(), "d")
		}
	})
	b.Run("nothing waits", func(b *testing.B) {
		for b.Loop() {
			shared.Around(b.Context(), "d")
		}
	})
}
