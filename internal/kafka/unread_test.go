package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

func TestUnread_AgeOfTheFirstRecord(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.New(t, kfake.SeedTopics(4, topic))
	reader, err := kafka.NewReader(fast(cluster))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	began := time.Now().Add(-24 * time.Hour).Truncate(time.Millisecond)
	at := func(p int32, hours ...int) {
		for _, h := range hours {
			cluster.Produce(t, &kgo.Record{Topic: topic, Partition: p, Timestamp: began.Add(time.Duration(h) * time.Hour), Value: []byte("v")})
		}
	}
	look := func() kafka.Unread {
		t.Helper()
		u, err := reader.Unread(t.Context(), topic, group)
		if err != nil {
			t.Fatal(err)
		}
		counted, err := reader.Behind(t.Context(), topic, group)
		if err != nil || counted.Records != u.Records || counted.Gone != u.Gone || !counted.Oldest.IsZero() {
			t.Errorf("Behind is %+v, %v; Unread is %+v", counted, err, u)
		}
		return u
	}
	if u := look(); u != (kafka.Unread{}) {
		t.Errorf("of an empty topic: %+v", u)
	}
	at(0, 5, 6, 7)
	at(1, 9, 3) // the first in the log counts, because it is read first
	at(2, 1, 2)
	if u := look(); !u.Oldest.Equal(began.Add(time.Hour)) || u.Records != 7 || u.Gone != 0 {
		t.Errorf("nothing is committed: %+v", u)
	}
	client := cluster.Client(t)
	defer client.Close()
	admin := kadm.NewClient(client)
	commit := func(offsets map[int32]int64) {
		var o kadm.Offsets
		for p, offset := range offsets {
			o.AddOffset(topic, p, offset, -1)
		}
		if err := admin.CommitAllOffsets(t.Context(), group, o); err != nil {
			t.Fatal(err)
		}
	}
	commit(map[int32]int64{0: 1, 2: 2})
	if u := look(); !u.Oldest.Equal(began.Add(6*time.Hour)) || u.Records != 4 {
		t.Errorf("partition 2 is read, 0 to its second: %+v", u)
	}
	if _, err := admin.DeleteRecords(t.Context(), kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 2}, 1: {Topic: topic, Partition: 1, At: 1}}}); err != nil {
		t.Fatal(err)
	}
	// The deleted record of partition 1 does not count as gone, because the group never committed there.
	if u := look(); !u.Oldest.Equal(began.Add(3*time.Hour)) || u.Records != 2 || u.Gone != 1 {
		t.Errorf("one record was deleted before it was read: %+v", u)
	}
	commit(map[int32]int64{0: 3, 1: 2})
	if u := look(); u != (kafka.Unread{}) {
		t.Errorf("all is read: %+v", u)
	}
}

// A transaction that hangs holds up every reader. The retention of what waits behind it runs all the same.
func TestUnread_OpenTransaction(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.New(t, kfake.SeedTopics(2, topic))
	reader, err := kafka.NewReader(fast(cluster))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	began := time.Now().Add(-24 * time.Hour).Truncate(time.Millisecond)
	producer := cluster.Client(t, kgo.TransactionalID("hangs"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for p, hours := range []int{2, 1} {
		r := &kgo.Record{Topic: topic, Partition: int32(p), Timestamp: began.Add(time.Duration(hours) * time.Hour), Value: []byte("v")}
		if err := producer.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	look := func() kafka.Unread {
		t.Helper()
		u, err := reader.Unread(t.Context(), topic, group)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	if u := look(); !u.Oldest.Equal(began.Add(time.Hour)) || u.Records != 2 {
		t.Errorf("all waits for the transaction: %+v", u)
	}
	if err := producer.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	if u := look(); !u.Oldest.IsZero() {
		t.Errorf("the transaction was aborted: %+v", u)
	}
}

func TestUnread_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.New(t, kfake.SeedTopics(2, topic))
	cluster.Values(t, topic, 0, "v")
	defer cluster.Mute(kmsg.Fetch)()
	reader, err := kafka.NewReader(fast(cluster))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if u, err := reader.Unread(ctx, topic, group); err == nil || time.Since(began) > 10*time.Second {
		t.Errorf("%+v, %v after %s", u, err, time.Since(began))
	}
}

func TestUnread_MissingTopicIsAFault(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.New(t)
	reader, err := kafka.NewReader(fast(cluster))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := reader.Unread(t.Context(), "missing", group); reason(err) != kafka.ReasonTopicMissing {
		t.Errorf("%v", err)
	}
}

func TestReader_Retention(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.New(t)
	client := cluster.Client(t)
	defer client.Close()
	ms, size := "3600000", "1048576"
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, map[string]*string{"retention.ms": &ms, "retention.bytes": &size}, topic); err != nil {
		t.Fatal(err)
	}
	reader, err := kafka.NewReader(fast(cluster))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if got := reader.Topic(t.Context(), topic); got.Err != nil || got.ConfigErr != nil || !got.RetentionKnown || got.Retention != time.Hour || got.RetentionBytes != 1<<20 {
		t.Errorf("%+v", got)
	}
	if got := reader.Topic(t.Context(), "missing"); reason(got.Err) != kafka.ReasonTopicMissing {
		t.Errorf("%+v", got)
	}
}
