package kafka_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/testkit/kafkatest"
)

// TestSource_KnowsAGrownTopicAtOnce has two members that look at their topic once an hour. Limits without Redis depend
// on the number of partitions, and only one of both can get the last partition.
func TestSource_KnowsAGrownTopicAtOnce(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(3, topic))
	var seen book
	leader := run(t, fast(c), small(), storing(seen.note)) // it shares the topic out
	kafkatest.Eventually(t, "the leader has all partitions", func() bool { return leader.Assigned() == 3 })
	rare := small()
	rare.WatchInterval = time.Hour
	one, other := run(t, fast(c), rare, storing(seen.note)), run(t, fast(c), rare, storing(seen.note))
	kafkatest.Eventually(t, "each has a partition and knows all", func() bool {
		return one.Assigned() == 1 && other.Assigned() == 1 && one.Partitions() == 3 && other.Partitions() == 3
	})
	client := c.Client(t)
	defer client.Close()
	if _, err := kadm.NewClient(client).UpdatePartitions(t.Context(), 9, topic); err != nil {
		t.Fatal(err)
	}
	kafkatest.Eventually(t, "all know the new partitions", func() bool {
		return leader.Assigned()+one.Assigned()+other.Assigned() == 9 && one.Partitions() == 9 && other.Partitions() == 9
	})
}
