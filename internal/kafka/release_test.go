package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/kafka"
	"docket/internal/record/home"
	"docket/internal/testkit/kafkatest"
)

// TestRelease_NotOfRecordsInUse releases two batches of three and keeps every third. It compares the kept records
// after everything was read.
func TestRelease_NotOfRecordsInUse(t *testing.T) {
	t.Parallel()
	const partitions, sets, each = 3, 30, 50
	c := kafkatest.New(t, kfake.SeedTopics(partitions, topic))
	told := func(partition, n int) string {
		return fmt.Sprintf("%d/%d %s", partition, n, strings.Repeat(fmt.Sprint(n%7), 100+n%90))
	}
	codecs := []kgo.CompressionCodec{kgo.Lz4Compression(), kgo.Lz4Compression(), kgo.SnappyCompression(), kgo.GzipCompression(), kgo.ZstdCompression(), kgo.NoCompression()}
	for set := range sets {
		client := c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[set%len(codecs)]))
		var records []*kgo.Record
		for p := range partitions {
			for i := range each {
				n := set*each + i
				records = append(records, &kgo.Record{Topic: topic, Partition: int32(p), Key: []byte(fmt.Sprint(n)), Value: []byte(told(p, n))})
			}
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
	var mu sync.Mutex
	var kept []*kgo.Record
	var seen book
	right := func(r *kgo.Record) {
		if want := told(int(r.Partition), int(r.Offset)); string(r.Value) != want || string(r.Key) != fmt.Sprint(r.Offset) || r.Topic != topic {
			t.Errorf("record %d of partition %d reads %q", r.Offset, r.Partition, r.Value)
		}
	}
	sc := small()
	sc.BatchRecords, sc.FetchMaxPartitionBytes = 40, 2<<10
	run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		for n := 0; ; n++ {
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			for _, r := range b.Records() {
				right(r)
				seen.note(r.Partition, r.Offset)
			}
			if n%3 == 0 {
				mu.Lock()
				kept = append(kept, b.Records()...)
				mu.Unlock()
			}
			settled := settle(b)
			if n%3 != 0 {
				b.Release()
			}
			if err := a.Commit(ctx, settled); err != nil {
				return err
			}
		}
	})
	kafkatest.Eventually(t, "all is read", func() bool { return seen.len() == partitions*sets*each })
	mu.Lock()
	defer mu.Unlock()
	for _, r := range kept {
		right(r)
	}
	if len(kept) == 0 {
		t.Error("nothing was kept")
	}
}

// TestRelease_MemoryIsUsedAgain compares the memory for reading a topic if all is released, and if nothing is. A set
// is produced when the one before is done, because the machine decides how much is fetched ahead.
//
//nolint:paralleltest // it measures what is the whole process's
func TestRelease_MemoryIsUsedAgain(t *testing.T) {
	const sets, each = 20, 200
	made := func(release func(*home.Batch)) int64 {
		c := kafkatest.New(t, kfake.SeedTopics(1, topic))
		sc := small()
		sc.BatchRecords, sc.FetchMaxPartitionBytes = each, 1
		var done atomic.Int64
		m := run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
			for {
				b, err := a.Fetch(ctx)
				if err != nil {
					return err
				}
				n := len(b.Records())
				settled := settle(b)
				release(b)
				done.Add(int64(n))
				if err := a.Commit(ctx, settled); err != nil {
					return err
				}
			}
		})
		for n := range sets {
			var records []*kgo.Record
			for i := range each {
				records = append(records, &kgo.Record{Topic: topic, Value: []byte(strings.Repeat("v", 700) + fmt.Sprint(n*each+i))})
			}
			client := c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
			if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			client.Close()
			kafkatest.Eventually(t, "the set is done with", func() bool { return done.Load() == int64(n+1)*each })
		}
		m.end()
		return kafka.SpareMade(m.Source)
	}
	without := made(func(*home.Batch) {})
	with := made((*home.Batch).Release)
	if want := int64(sets * each * 700); without < want || with > without/4 {
		t.Errorf("%d bytes of new memory where all is released, %d where nothing is", with, without)
	}
}
