package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/record/home"
	"docket/internal/testkit/kafkatest"
)

// stamped makes records of partition 0 whose Kafka timestamps have these ages.
func stamped(now time.Time, ages ...time.Duration) []*kgo.Record {
	var all []*kgo.Record
	for _, age := range ages {
		all = append(all, &kgo.Record{Topic: topic, Value: []byte("{}"), Timestamp: now.Add(-age).Truncate(time.Millisecond)})
	}
	return all
}

func TestLag_OldestUncommittedRecord(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	now := time.Now()
	records := stamped(now, 3*time.Minute, 2*time.Minute, 9*time.Minute, time.Minute)
	c.Produce(t, records...)
	steps, done := make(chan func(a *kafka.Assignment)), make(chan struct{})
	m := run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		for {
			select {
			case step := <-steps:
				step(a)
				done <- struct{}{}
			case <-a.Leaving().Done():
				return nil
			}
		}
	})
	do := func(step func(a *kafka.Assignment)) {
		steps <- step
		<-done
	}
	oldest := func() time.Time {
		for _, l := range m.Lag() {
			return l.Oldest
		}
		return time.Time{}
	}
	want := func(what string, at time.Time) {
		t.Helper()
		if got := oldest(); !got.Equal(at) {
			t.Errorf("%s: %v, want %v", what, got, at)
		}
	}
	kafkatest.Eventually(t, "all are in the queue", func() bool { return oldest().Equal(records[2].Timestamp) })
	if !m.LastCommit().IsZero() {
		t.Error("a commit before the first")
	}
	// Taken one by one, as the replayer's window does, and finished out of order.
	var batches []*home.Batch
	do(func(a *kafka.Assignment) {
		for range 4 {
			took, err := a.Take(t.Context(), 1, 1<<20, 0)
			if err != nil {
				t.Error(err)
				return
			}
			a.Account().Enter(took...)
			batches = append(batches, a.Account().Batch(took))
		}
	})
	want("all are in hand", records[2].Timestamp)
	for _, c := range []struct {
		batch int
		what  string
		at    time.Time
	}{
		{2, "the oldest has its home and one before it waits", records[2].Timestamp},
		{0, "the first is committed", records[2].Timestamp},
		{1, "three are committed", records[3].Timestamp},
		{3, "all are committed", time.Time{}},
	} {
		do(func(a *kafka.Assignment) {
			if err := a.Commit(t.Context(), settle(batches[c.batch])); err != nil {
				t.Error(err)
			}
		})
		want(c.what, c.at)
	}
	if since := time.Since(m.LastCommit()); since < 0 || since > time.Minute {
		t.Errorf("the last commit was %v ago", since)
	}
}

func TestLastCommit_NotARefusedOne(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	asked := make(chan struct{}, 100)
	refusal := c.Fail(kmsg.OffsetCommit, kerr.NotCoordinator, -1)
	c.Watch(kmsg.OffsetCommit, func(kmsg.Request) { asked <- struct{}{} })
	c.Values(t, topic, 0, values(5)...)
	m := run(t, fast(c), small(), storing(func(int32, int64) {}))
	<-asked
	<-asked
	if at := m.LastCommit(); !at.IsZero() {
		t.Errorf("the last commit is said to be of %v, and none was taken", at)
	}
	refusal.Remove()
	kafkatest.Eventually(t, "it is known once it is taken", func() bool { return !m.LastCommit().IsZero() })
}

func TestRetention_ForbiddenIsNoFault(t *testing.T) {
	t.Parallel()
	week, ever := "604800000", "-1"
	compact := "compact"
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	for name, configs := range map[string]map[string]*string{
		"week": {"retention.ms": &week}, "ever": {"retention.ms": &ever}, "compact": {"retention.ms": &week, "cleanup.policy": &compact},
	} {
		makeTopic(t, c, name, configs)
	}
	sc := small()
	sc.RetentionOf = []string{"missing", "week", "ever", "compact"}
	m := run(t, fast(c), sc, storing(func(int32, int64) {}))
	kafkatest.Eventually(t, "retention is known", func() bool { return len(m.Retention()) == 3 })
	got := m.Retention()
	if got["week"] != 7*24*time.Hour || got["ever"] >= 0 || got["compact"] >= 0 {
		t.Errorf("%v", got)
	}

	refused := kafkatest.New(t, kfake.SeedTopics(1, topic))
	asked := make(chan struct{}, 100)
	refused.Fail(kmsg.DescribeConfigs, kerr.TopicAuthorizationFailed, 100)
	refused.Watch(kmsg.DescribeConfigs, func(kmsg.Request) { asked <- struct{}{} })
	refused.Values(t, topic, 0, values(5)...)
	sc.RetentionOf = []string{topic, "other"}
	var seen book
	m = run(t, fast(refused), sc, storing(seen.note))
	kafkatest.Eventually(t, "both topics were asked about", func() bool { return len(asked) == 2 })
	kafkatest.Eventually(t, "records are committed all the same", func() bool { return refused.Committed(t, group, topic)[0] == 5 })
	if got, f := m.Retention(), m.Fault(); len(got) != 0 || f != nil {
		t.Errorf("retention %v, fault %v", got, f)
	}
}

func makeTopic(t *testing.T, c *kafkatest.Cluster, name string, configs map[string]*string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = name, 1, 1
	for key, value := range configs {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = key, value
		one.Configs = append(one.Configs, config)
	}
	req.Topics = append(req.Topics, one)
	client := c.Client(t)
	defer client.Close()
	answer, err := req.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
