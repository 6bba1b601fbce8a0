package kafka_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/testkit/kafkatest"
)

// TestAssignment_LeftOutTopic has a group leader that reads another topic of the group. It looks up this topic
// while the brokers do not know it.
func TestAssignment_LeftOutTopic(t *testing.T) {
	t.Parallel()
	const other = "decision-logs-dlq"
	c := kafkatest.New(t, kfake.SeedTopics(1, topic, other))
	c.Values(t, topic, 0, values(3)...)
	c.Values(t, other, 0, values(5)...)
	var first, second book
	leading := run(t, fast(c), small(), storing(first.note))
	kafkatest.Eventually(t, "the first reads its topic", func() bool { return first.len() == 3 && leading.Assigned() == 1 })
	var unknown atomic.Bool
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: other, Err: kerr.UnknownTopicOrPartition, Count: -1,
		When: func(kmsg.Request) bool { return unknown.Load() }})
	joins := c.Watch(kmsg.JoinGroup, func(kmsg.Request) { unknown.Store(true) })
	shared := make(chan struct{})
	var once sync.Once
	c.Watch(kmsg.SyncGroup, func(req kmsg.Request) {
		if sync, ok := req.(*kmsg.SyncGroupRequest); ok && len(sync.GroupAssignment) > 1 {
			once.Do(func() { close(shared) })
		}
	})
	sc := small()
	sc.Topic, sc.WatchInterval = other, 500*time.Millisecond
	m := run(t, fast(c), sc, storing(second.note))
	<-shared
	joins()
	unknown.Store(false)
	kafkatest.Eventually(t, "the second reads its topic", func() bool { return second.len() == 5 && m.Assigned() == 1 })
}
