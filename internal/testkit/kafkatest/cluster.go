// Package kafkatest has a Kafka for tests: a broker inside the process, its records, and its faults.
//
// It imports nothing of Docket, so that every package can use it. A test that passes here agrees with a fake by the
// author of the client. It proves nothing about Apache Kafka.
//
// Inside a bubble of testing/synctest use [NewVirtual]. Build the test with the tag synctests. Without it a commit
// that waits for a rebalance waits on a mutex, which blocks the bubble's clock.
package kafkatest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Timeout ends every wait of this package. It is long, so that a busy machine does not look like a failure.
const Timeout = 2 * time.Minute

// Dial connects to a broker.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Cluster is a running fake, with all methods of kfake.
type Cluster struct {
	*kfake.Cluster
	// Dial connects to it; nil for the usual way.
	Dial Dial
}

// New starts a cluster with one broker on a port of the loopback interface, which is closed when the test ends. More
// options, such as kfake.SeedTopics or kfake.NumBrokers, can be given.
func New(t testing.TB, opts ...kfake.Opt) *Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatalf("start the fake Kafka: %v", err)
	}
	t.Cleanup(c.Close)
	return &Cluster{Cluster: c}
}

// NewVirtual starts a cluster of one broker on a network inside the process, for use in a bubble of testing/synctest.
// The caller must Close it inside the bubble.
func NewVirtual(t testing.TB, opts ...kfake.Opt) *Cluster {
	t.Helper()
	network := new(kfake.VirtualNetwork)
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(network.Listen),
		kfake.GroupMinSessionTimeout(time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatalf("start the fake Kafka: %v", err)
	}
	return &Cluster{Cluster: c, Dial: network.DialContext}
}

// Brokers returns the seed brokers.
func (c *Cluster) Brokers() []string { return c.ListenAddrs() }

// Client makes a plain client of the cluster. The caller closes it.
func (c *Cluster) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append([]kgo.Opt{kgo.SeedBrokers(c.Brokers()...), kgo.DisableClientMetrics(), kgo.MetadataMinAge(20 * time.Millisecond)}, opts...)
	if c.Dial != nil {
		opts = append(opts, kgo.Dialer(c.Dial))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatalf("client of the fake Kafka: %v", err)
	}
	return client
}

// Produce writes records to their partitions, and returns when all are acknowledged.
func (c *Cluster) Produce(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	client := c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(64<<20), kgo.MaxBufferedRecords(len(records)+1))
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
}

// Values writes one record for each value to a partition.
func (c *Cluster) Values(t testing.TB, topic string, partition int32, values ...string) {
	t.Helper()
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}
	}
	c.Produce(t, records...)
}

// ReadAll returns every record of these topics that can be read now, by topic, partition and offset.
func (c *Cluster) ReadAll(t testing.TB, topics ...string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	reader := c.Client(t, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	defer reader.Close()
	admin := kadm.NewClient(reader)
	starts, err := admin.ListStartOffsets(ctx, topics...)
	ends, err2 := admin.ListCommittedOffsets(ctx, topics...)
	if err := errors.Join(err, err2); err != nil {
		t.Fatalf("list offsets of %v: %v", topics, err)
	}
	type partition struct {
		topic  string
		number int32
	}
	from, missing := map[string]map[int32]kgo.Offset{}, map[partition]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		if start, _ := starts.Lookup(end.Topic, end.Partition); start.Offset < end.Offset {
			if from[end.Topic] == nil {
				from[end.Topic] = map[int32]kgo.Offset{}
			}
			from[end.Topic][end.Partition] = kgo.NewOffset().At(start.Offset)
			missing[partition{end.Topic, end.Partition}] = end.Offset
		}
	})
	if len(missing) == 0 {
		return nil
	}
	reader.AddConsumePartitions(from)
	var all []*kgo.Record
	for len(missing) > 0 {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("read %v: %v", topics, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if at := (partition{r.Topic, r.Partition}); r.Offset+1 >= missing[at] {
				delete(missing, at)
			}
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	slices.SortFunc(all, func(a, b *kgo.Record) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return all
}

// Committed returns a group's committed offsets of a topic, by partition. Partitions without one are missing.
func (c *Cluster) Committed(t testing.TB, group, topic string) map[int32]int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	client := c.Client(t)
	defer client.Close()
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		t.Fatalf("committed offsets of %s: %v", group, err)
	}
	committed := map[int32]int64{}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic && o.At >= 0 {
			committed[o.Partition] = o.At
		}
	})
	return committed
}

// Eventually waits until ok returns true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Timeout); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
