package desk

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/desk/worker"
	"docket/internal/testkit/kafkatest"
)

// TestBacklog_BothTopics: from what the desk's group has committed to the ends.
func TestBacklog_BothTopics(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.New(t, kfake.SeedTopics(2, "decision-logs-dlq", "decision-logs-parking-dlq"))
	s := settings(t, append(nowhere(), "DOCKET_KAFKA_BROKERS="+strings.Join(cluster.Brokers(), ",")))
	expect := func(want worker.Backlog) {
		t.Helper()
		if got, err := Backlog(t.Context(), s); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	expect(worker.Backlog{})
	cluster.Values(t, s.KafkaDLQTopic, 0, "a", "b", "c")
	cluster.Values(t, s.KafkaParkingDLQTopic, 1, "d")
	expect(worker.Backlog{Records: 4})
	client := cluster.Client(t)
	defer client.Close()
	admin := kadm.NewClient(client)
	var done kadm.Offsets
	done.AddOffset(s.KafkaDLQTopic, 0, 2, -1)
	if err := admin.CommitAllOffsets(t.Context(), s.DeskGroup, done); err != nil {
		t.Fatal(err)
	}
	expect(worker.Backlog{Records: 2})
}

// TestBacklog_ContextEnds: a Kafka that is away is an error, in time.
func TestBacklog_ContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	if _, err := Backlog(ctx, settings(t, nowhere())); err == nil || time.Since(began) > 30*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}
