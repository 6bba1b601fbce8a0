package kafka_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// write appends a set to partitions, unchanged.
func write(t *testing.T, c *kafkatest.Cluster, set []byte, partitions ...int32) {
	t.Helper()
	client := c.Client(t)
	defer client.Close()
	kafkatest.Write(t, client, topic, set, partitions...)
}

// heap measures the memory of a test, under the soft limit that the consumer sets with default settings.
type heap struct {
	before, peak uint64
	stop         chan struct{}
	done         sync.WaitGroup
}

func live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func measure(t *testing.T) *heap {
	t.Helper()
	h := &heap{before: live(), stop: make(chan struct{})}
	limit := debug.SetMemoryLimit(int64(h.before) + 140<<20)
	h.done.Go(func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-h.stop:
				return
			case <-ticker.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				h.peak = max(h.peak, m.HeapAlloc)
			}
		}
	})
	t.Cleanup(func() { debug.SetMemoryLimit(limit) })
	return h
}

// within fails if more memory was used, in MiB: at the peak, garbage included, and now.
func (h *heap) within(t *testing.T, peak, now int64) {
	t.Helper()
	left := live()
	close(h.stop)
	h.done.Wait()
	p, l := int64(max(h.peak, h.before)-h.before)>>20, int64(max(left, h.before)-h.before)>>20
	t.Logf("heap: %d MiB at most, %d MiB now", p, l)
	if p > peak || l > now {
		t.Errorf("the heap was %d MiB and is %d MiB, bounds %d and %d", p, l, peak, now)
	}
}

func TestMemory_BombsHoldTheirPartition(t *testing.T) { //nolint:paralleltest // it measures the heap of the process
	tiny := func(n int) (records []byte) {
		for i := range n {
			records = kafkatest.AppendRecord(records, i, nil, 0)
		}
		return records
	}
	//nolint:paralleltest // as above
	for name, tc := range map[string]struct {
		records func() []byte
		n       int
		codec   kgo.CompressionCodec
	}{
		"headers":       {func() []byte { return kafkatest.AppendRecord(nil, 0, []byte("v"), 20_000_000) }, 1, kgo.ZstdCompression()},
		"records":       {func() []byte { return tiny(1_000_000) }, 1_000_000, kgo.ZstdCompression()},
		"bytes":         {func() []byte { return kafkatest.AppendRecord(nil, 0, make([]byte, 60<<20), 0) }, 1, kgo.ZstdCompression()},
		"plain headers": {func() []byte { return kafkatest.AppendRecord(nil, 0, []byte("v"), 2_000_000) }, 1, kgo.NoCompression()},
		"plain records": {func() []byte { return tiny(500_000) }, 500_000, kgo.NoCompression()},
	} {
		t.Run(name, func(t *testing.T) {
			c := kafkatest.New(t, kfake.SeedTopics(2, topic), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "33554432"}))
			set := kafkatest.Set(t, tc.records(), tc.n, tc.codec)
			write(t, c, set, 0)
			c.Values(t, topic, 0, "behind it")
			c.Values(t, topic, 1, values(10)...)
			h := measure(t)
			var seen book
			m := run(t, fast(c), kafka.SourceConfig{Topic: topic, Group: group, MaxDecompressBytes: 32 << 20}, storing(seen.note))
			kafkatest.Eventually(t, "the fault says set_too_large", func() bool { return reason(m.Fault()) == kafka.ReasonSetTooLarge })
			kafkatest.Eventually(t, "the other partition is read", func() bool { return seen.len() == 10 })
			h.within(t, 140, 32)
			f := (*kafka.FaultError)(nil)
			if !errors.As(m.Fault(), &f) || f.Partition != 0 || f.Offset != 0 {
				t.Fatalf("the fault is %+v", f)
			}
			m.end()
			if to := follow(t, c, f.Hint); to != int64(tc.n) {
				t.Fatalf("the hint skips to %d, the set ends before %d", to, tc.n)
			}
			run(t, fast(c), kafka.SourceConfig{Topic: topic, Group: group, MaxDecompressBytes: 32 << 20}, storing(seen.note))
			kafkatest.Eventually(t, "what comes behind the set is read", func() bool { return seen.len() == 11 })
		})
	}
}

// TestHolds_ReadAgainWhatTheyDropped holds partitions at any time, and checks that each record comes once and in
// order.
func TestHolds_ReadAgainWhatTheyDropped(t *testing.T) {
	t.Parallel()
	const partitions, perPartition = 6, 300
	c := kafkatest.New(t, kfake.SeedTopics(partitions, topic))
	for range perPartition / 10 {
		for p := range int32(partitions) {
			c.Values(t, topic, p, values(10)...)
		}
	}
	sc := small()
	sc.BatchRecords, sc.BufferBytes, sc.MaxDecompressBytes, sc.FetchMaxPartitionBytes = 7, 12<<10, 12<<10, 1
	var seen book
	run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		random := rand.New(rand.NewPCG(1, uint64(a.Partition())))
		next := int64(0)
		for {
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			for _, r := range b.Records() {
				if r.Offset != next || string(r.Value) != values(10)[next%10] {
					t.Errorf("offset %d of partition %d came as %d with %s", next, r.Partition, r.Offset, r.Value)
				}
				next = r.Offset + 1
				seen.note(r.Partition, r.Offset)
			}
			if random.IntN(6) == 0 {
				release := a.Hold()
				select {
				case <-time.After(time.Duration(random.IntN(20)) * time.Millisecond):
				case <-ctx.Done():
				}
				release()
			}
			if err := a.Commit(ctx, settle(b)); err != nil {
				return err
			}
			b.Release()
		}
	})
	kafkatest.Eventually(t, "all is read", func() bool { return seen.len() == partitions*perPartition })
	kafkatest.Eventually(t, "all is committed", func() bool {
		sum := int64(0)
		for _, at := range c.Committed(t, group, topic) {
			sum += at
		}
		return sum == partitions*perPartition
	})
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for p, offsets := range seen.seen {
		for o, n := range offsets {
			if n != 1 {
				t.Errorf("%d/%d came %d times", p, o, n)
			}
		}
	}
}
