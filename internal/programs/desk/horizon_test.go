package desk

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/desk/ledger"
	"docket/internal/kafka"
	"docket/internal/service/app"
	"docket/internal/testkit/kafkatest"
)

// noLetters is a ledger without open dead letters.
type noLetters struct{ ledger.Reader }

func (noLetters) OldestFound(context.Context) (map[string]time.Time, error) { return nil, nil }

// TestHorizon_AllLanes: each lane has the commits of its own group. A desk of a shard counts its own partitions.
func TestHorizon_AllLanes(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.New(t, kfake.SeedTopics(2, "decision-logs", "decision-logs-urgent", "decision-logs-bulk",
		"decision-logs-parking", "decision-logs-dlq", "decision-logs-parking-dlq", "decision-logs-parking-a", "decision-logs-dlq-a", "decision-logs-parking-dlq-a"))
	look := func(more ...string) string {
		s := settings(t, nowhere(append(more, "DOCKET_KAFKA_BROKERS="+strings.Join(cluster.Brokers(), ","), "DOCKET_LANES=urgent,bulk")...))
		brokers, err := app.Kafka(s, "test")
		if err != nil {
			t.Fatal(err)
		}
		reader, err := kafka.NewReader(brokers)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		now := time.Now()
		var all strings.Builder
		for _, l := range NewHorizon(s, reader, noLetters{}).Look(t.Context(), now) {
			all.WriteString(l.Text(now) + "\n")
		}
		return all.String()
	}
	cluster.Values(t, "decision-logs", 0, "a", "b", "c")
	cluster.Values(t, "decision-logs-urgent", 0, "d")
	cluster.Values(t, "decision-logs-urgent", 1, "e")
	client := cluster.Client(t)
	defer client.Close()
	var done kadm.Offsets
	done.AddOffset("decision-logs", 0, 1, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), "docket", done); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"; lane default, 2 not committed\n", "; lane urgent, 2 not committed\n", "\ndecision-logs-bulk: all of it is committed\n"} {
		if got := look(); !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if got := look("DOCKET_SHARDS=a=0,b=1", "DOCKET_SHARD=a"); !strings.Contains(got, "; lane default, 3 not committed\n") || !strings.Contains(got, "; lane urgent, 1 not committed\n") {
		t.Errorf("of a shard: %s", got)
	}
}
