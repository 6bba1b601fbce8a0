package desk

import (
	"context"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/output"
)

// A desk of a shard says that nobody reads the dead letters of before the shards.
func TestFormer_UnreadLettersAreTold(t *testing.T) {
	t.Parallel()
	k := kafkatest.New(t, kfake.SeedTopics(1, "decision-logs-dlq"))
	k.Values(t, "decision-logs-dlq", 0, "1", "2")
	brokers := "DOCKET_KAFKA_BROKERS=" + strings.Join(k.Brokers(), ",")
	run := func(ctx context.Context, log *output.Buffer, more ...string) {
		s := settings(t, nowhere(append(more, brokers)...))
		cfg, err := app.Kafka(s, "desk")
		if err != nil {
			t.Error(err)
			return
		}
		reader, err := kafka.NewReader(cfg)
		if err != nil {
			t.Error(err)
			return
		}
		defer reader.Close()
		tellFormer(ctx, s, reader, zerolog.New(log))
	}
	var none, log output.Buffer
	if run(t.Context(), &none); none.String() != "" {
		t.Errorf("without shards: %s", none.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx, &log, "DOCKET_SHARDS=a=0-5,b=6-11", "DOCKET_SHARD=a")
	}()
	kafkatest.Eventually(t, "the line", func() bool { return strings.Contains(log.String(), "former topic may have unread records") })
	cancel()
	<-done
	if text := log.String(); !strings.Contains(text, "former topic decision-logs-dlq") || !strings.Contains(text, "it has 2 records") || !strings.Contains(text, "docs/scaling.md") {
		t.Error(text)
	}
}
