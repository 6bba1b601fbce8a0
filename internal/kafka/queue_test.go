package kafka_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

func TestQueue_StaysWithinItsMark(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(2, topic))
	for range 40 {
		c.Values(t, topic, 0, values(20)...) // each call writes one set of records
	}
	sc := small()
	sc.FetchMaxPartitionBytes = 1 // one set at a time
	sc.BufferBatches = 4
	const mark = 4 * 10
	started, release := make(chan *kafka.Assignment, 1), make(chan struct{})
	var other book
	run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		if a.Partition() != 0 {
			return storing(other.note)(ctx, a)
		}
		started <- a
		select {
		case <-release:
		case <-a.Leaving().Done():
		}
		for {
			if _, err := a.Take(ctx, 7, 1<<20, 0); err != nil {
				return err
			}
		}
	})
	a := <-started
	kafkatest.Eventually(t, "the queue reaches its mark", func() bool { n, _ := kafka.Queued(a); return n >= mark })
	for n := 1; n <= 8; n++ { // the other partition is read meanwhile
		c.Values(t, topic, 1, "v")
		kafkatest.Eventually(t, "the other partition is read", func() bool { return other.len() == n })
	}
	if n, _ := kafka.Queued(a); n > 3*mark {
		t.Errorf("a queue with a mark of %d holds %d", mark, n)
	}
	close(release)
	kafkatest.Eventually(t, "it drains", func() bool { n, _ := kafka.Queued(a); return n == 0 })
}

// TestQueue_AllStayWithinTheBuffer takes no records for a while, and then all at once, in batches that are larger
// than a partition's share of the buffer.
func TestQueue_AllStayWithinTheBuffer(t *testing.T) {
	t.Parallel()
	const partitions, perPartition, buffer, set = 8, 100, 256 << 10, 4 << 10
	c := kafkatest.New(t, kfake.SeedTopics(partitions, topic))
	noise := make([]byte, set)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte('a' + random.IntN(26))
	}
	for range perPartition / 10 {
		for p := range int32(partitions) {
			var values []string
			for range 10 {
				values = append(values, string(noise))
			}
			c.Values(t, topic, p, values...)
		}
	}
	sc := small()
	sc.BatchRecords, sc.BatchBytes, sc.BatchWait, sc.BufferBytes = 1000, 1<<20, time.Hour, buffer
	sc.FetchMaxPartitionBytes = set
	var mu sync.Mutex
	all := map[*kafka.Assignment]bool{}
	release := make(chan struct{})
	var seen book
	run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		mu.Lock()
		all[a] = true
		mu.Unlock()
		select {
		case <-release:
		case <-a.Leaving().Done():
		}
		for { // a full queue is a batch: no more records come to fill it
			if err := a.Ready(ctx); err != nil {
				return err
			}
			b, err := a.Fetch(ctx)
			if err != nil {
				return err
			}
			for _, r := range b.Records() {
				seen.note(r.Partition, r.Offset)
			}
			if err := a.Commit(ctx, settle(b)); err != nil {
				return err
			}
		}
	})
	held := func() (sum int64, full int) {
		mu.Lock()
		defer mu.Unlock()
		for a := range all {
			_, bytes := kafka.Queued(a)
			if sum += bytes; bytes >= buffer/partitions {
				full++
			}
		}
		return sum, full
	}
	kafkatest.Eventually(t, "every queue is full", func() bool { _, full := held(); return full == partitions })
	time.Sleep(20 * time.Millisecond) // late records may only make it worse
	if sum, _ := held(); sum > buffer+partitions*12*set {
		t.Errorf("queues with %d bytes for all hold %d", buffer, sum)
	}
	close(release)
	// The last few fill no share, so the queue would wait for more.
	kafkatest.Eventually(t, "nearly all is read", func() bool { return seen.len() > partitions*(perPartition-2*buffer/partitions/set) })
}
