package kafka_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// TestMemory_LargeSetBesideAWaitingLane has a source whose partitions wait with what they borrowed, as for tokens of a
// limit. Another source gets a set that does not fit beside that. Each record is read once.
func TestMemory_LargeSetBesideAWaitingLane(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(3, topic), kfake.SeedTopics(1, "urgent"))
	setOf := func(n int) []byte {
		var records []byte
		for i := range n {
			records = kafkatest.AppendRecord(records, i, bytes.Repeat([]byte("a"), 100<<10), 0)
		}
		return kafkatest.Set(t, records, n, kgo.ZstdCompression())
	}
	write(t, c, setOf(30), 0, 1, 2) // of 3 MiB
	client := c.Client(t)
	defer client.Close()

	memory := kafka.NewMemory()
	low, urgent := small(), small()
	low.Memory, low.BufferBytes, low.MaxDecompressBytes = memory, 4<<20, 8<<20
	urgent.Memory, urgent.BufferBytes, urgent.MaxDecompressBytes = memory, 1<<20, 8<<20
	urgent.Topic, urgent.Group, urgent.Role = "urgent", "docket-urgent", "source-urgent"
	var waiting, read atomic.Int64
	goOn := make(chan struct{})
	first := run(t, fast(c), low, func(ctx context.Context, a *kafka.Assignment) error {
		for n := 0; ; n++ {
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			if n == 0 {
				waiting.Add(1)
				select {
				case <-goOn:
				case <-a.Leaving().Done():
					return ctx.Err()
				}
			}
			read.Add(int64(len(b.Records())))
			if err := a.Commit(ctx, settle(b)); err != nil {
				return err
			}
		}
	})
	kafkatest.Eventually(t, "all partitions of the first lane wait", func() bool { return waiting.Load() == 3 })
	kafkatest.Write(t, client, "urgent", setOf(70), 0)
	var late atomic.Int64
	second := run(t, fast(c), urgent, func(ctx context.Context, a *kafka.Assignment) error {
		for {
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			late.Add(int64(len(b.Records())))
			if err := a.Commit(ctx, settle(b)); err != nil {
				return err
			}
		}
	})
	from := time.Now()
	kafkatest.Eventually(t, "the set of the other lane is read", func() bool { return late.Load() == 70 })
	t.Logf("the other lane waited for %v", time.Since(from))
	close(goOn)
	kafkatest.Eventually(t, "the first lane reads on", func() bool { return read.Load() == 90 })
	first.stop()
	second.stop()
	for _, m := range []*member{first, second} {
		if err := m.end(); err != nil {
			t.Error(err)
		}
	}
	if first.Fault() != nil || second.Fault() != nil || read.Load() != 90 || late.Load() != 70 {
		t.Errorf("%d and %d records; faults %v, %v", read.Load(), late.Load(), first.Fault(), second.Fault())
	}
}
