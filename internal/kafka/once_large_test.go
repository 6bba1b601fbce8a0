package kafka_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/consumer/replay"
	"docket/internal/kafka"
	"docket/internal/record/envelope"
	"docket/internal/testkit/kafkatest"
)

// docket replay --once: partition 0 ends with a large record that is not due. Partition 1 has a large record that is.
func TestOnce_EndedPartitionGivesBack(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(2, topic))
	parked := func(p int32, size int, after time.Duration) *kgo.Record {
		return &kgo.Record{Topic: topic, Partition: p, Timestamp: time.Now(), Value: make([]byte, size),
			Headers: []kgo.RecordHeader{{Key: envelope.NotBefore, Value: []byte(strconv.FormatInt(time.Now().Add(after).UnixMilli(), 10))}}}
	}
	c.Produce(t, parked(0, 300<<10, time.Hour), parked(1, 150<<10, 0))
	sc := small()
	sc.Once, sc.BatchBytes, sc.BufferBytes = true, 128<<10, 128<<10
	var let atomic.Int64
	first := make(chan struct{})
	m := run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		if a.Partition() == 0 {
			defer close(first)
		} else {
			<-first
		}
		w := replay.New(replay.Config{Lookahead: 100, Weigh: kafka.RecordBytes, MaxBackoff: 2 * time.Hour, BatchRecords: 10, BatchBytes: 128 << 10, Once: true}, a)
		for {
			b, err := w.Fetch(ctx)
			if errors.Is(err, pipeline.ErrDone) {
				return nil
			}
			if err != nil {
				return err
			}
			let.Add(int64(len(b.Records())))
			if err := a.Commit(ctx, settle(b)); err != nil {
				return err
			}
		}
	})
	select {
	case <-m.done:
	case <-time.After(kafkatest.Timeout):
		t.Fatal("it does not end")
	}
	if let.Load() != 1 || m.err != nil {
		t.Errorf("%d due records were replayed, want 1; the run ended with %v; committed %v", let.Load(), m.err, c.Committed(t, group, topic))
	}
}
