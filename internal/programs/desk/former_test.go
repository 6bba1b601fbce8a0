package desk

import (
	"context"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/audit/check"
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

// A desk that may not look at a topic that was never there says so once, and not each hour. It tells again of records that are unread.
func TestFormer_NotKnownIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		looks [][]check.Result
		want  int
	}{
		"forbidden":       {[][]check.Result{{{What: "a", Level: check.Warn, Detail: "forbidden"}}, {{What: "a", Level: check.Warn, Detail: "forbidden"}}}, 1},
		"two topics":      {[][]check.Result{{{What: "a", Level: check.Warn, Detail: "forbidden"}}, {{What: "b", Level: check.Warn, Detail: "forbidden"}}}, 2},
		"another reason":  {[][]check.Result{{{What: "a", Level: check.Warn, Detail: "forbidden"}}, {{What: "a", Level: check.Warn, Detail: "1 record"}}}, 2},
		"known as unread": {[][]check.Result{{{What: "a", Level: check.Fail, Detail: "1 record"}}, {{What: "a", Level: check.Fail, Detail: "1 record"}}}, 2},
	} {
		var log output.Buffer
		told := map[string]string{}
		for _, look := range c.looks {
			logFormer(look, told, zerolog.New(&log))
		}
		if got := strings.Count(log.String(), "former topic may have unread records"); got != c.want {
			t.Errorf("%s: %d lines\n%s", name, got, log.String())
		}
	}
}
