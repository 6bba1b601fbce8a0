package kafka

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestScan_CommitsNothing(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "logs"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	began := time.Now()
	for i := range 30 {
		r := &kgo.Record{Topic: "logs", Partition: int32(i % 2), Value: []byte{byte(i)}, Timestamp: began.Add(time.Duration(i) * time.Hour)}
		if err := producer.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := kadm.NewClient(producer).DeleteRecords(ctx, kadm.Offsets{"logs": {1: {Topic: "logs", Partition: 1, At: 4}}}); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(Config{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	next := map[int32]int64{0: 3, 1: 4}
	n := 0
	first, err := r.Scan(ctx, "logs", map[int32]int64{0: 3, 1: 2, 2: 0}, map[int32]int64{0: 7, 1: 99, 2: 99, 3: 5}, func(rec *kgo.Record) error {
		if rec.Offset != next[rec.Partition] || rec.Value[0] != byte(2*rec.Offset+int64(rec.Partition)) {
			t.Errorf("read %d/%d, value %v", rec.Partition, rec.Offset, rec.Value)
		}
		next[rec.Partition]++
		n++
		return nil
	})
	if err != nil || n != 4+11 || !maps.Equal(first, map[int32]int64{0: 3, 1: 4, 2: 0}) || !maps.Equal(next, map[int32]int64{0: 7, 1: 15}) {
		t.Errorf("%d records from %v to %v, %v", n, first, next, err)
	}
	enough := errors.New("enough")
	if _, err := r.Scan(ctx, "logs", nil, map[int32]int64{0: 9}, func(*kgo.Record) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("ended with %v", err)
	}
	if since, err := r.Since(ctx, "logs", began.Add(10*time.Hour)); err != nil || since[0] != 5 || since[1] != 5 || since[2] != 0 {
		t.Errorf("since %v, %v", since, err)
	}
	if done, err := r.Committed(ctx, "nobody", "logs"); err != nil || len(done) != 0 {
		t.Errorf("committed %v, %v", done, err)
	}
	var fault *FaultError
	if _, err := r.Scan(ctx, "missing", nil, map[int32]int64{0: 9}, nil); !errors.As(err, &fault) || fault.Reason != ReasonTopicMissing {
		t.Errorf("a missing topic: %v", err)
	}
	groups, err := kadm.NewClient(producer).ListGroups(ctx)
	if err != nil || len(groups) != 0 {
		t.Errorf("groups %v, %v", groups, err)
	}
}

// TestMembers_CountsThem: a group that does not exist has none.
func TestMembers_CountsThem(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "logs"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := NewReader(Config{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := r.Members(ctx, "docket"); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	member, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumerGroup("docket"), kgo.ConsumeTopics("logs"))
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	for n := 0; n != 1; {
		if n, err = r.Members(ctx, "docket"); err != nil {
			t.Fatal(err)
		}
	}
}
