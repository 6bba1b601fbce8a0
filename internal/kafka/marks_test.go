package kafka_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// transact writes one record for each end, in a transaction of its own.
func transact(t *testing.T, c *kafkatest.Cluster, ends ...kgo.TransactionEndTry) {
	t.Helper()
	client := c.Client(t, kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(topic))
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
	defer cancel()
	for _, end := range ends {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(ctx, kgo.StringRecord("in a transaction")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
}

func lag(m *member) int64 {
	sum := int64(0)
	for _, l := range m.Lag() {
		sum += l.Lag
	}
	return sum
}

// TestMarks_AreCommittedWhenNothingIsOpen has transactions at the end of a partition, the last of them aborted. Once
// all is committed retention may delete the whole log, and a restart reads on.
func TestMarks_AreCommittedWhenNothingIsOpen(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	transact(t, c, kgo.TryCommit, kgo.TryCommit, kgo.TryCommit)
	var first, second book
	m := run(t, fast(c), small(), storing(first.note))
	kafkatest.Eventually(t, "the records are committed", func() bool { return c.Committed(t, group, topic)[0] == 6 })
	transact(t, c, kgo.TryAbort)
	kafkatest.Eventually(t, "the end is committed", func() bool { return c.Committed(t, group, topic)[0] == 8 })
	kafkatest.Eventually(t, "the lag is 0", func() bool { return lag(m) == 0 })
	if n := first.len(); n != 3 {
		t.Errorf("%d records, want 3: the aborted one and the marks are none", n)
	}
	m.end()
	if err := c.DeleteRecords(topic, 0, 8); err != nil {
		t.Fatal(err)
	}
	c.Values(t, topic, 0, "new")
	m = run(t, fast(c), small(), storing(second.note))
	kafkatest.Eventually(t, "the new record is read", func() bool { return second.len() == 1 })
	if err := m.Fault(); err != nil {
		t.Error(err)
	}
}

func TestMarks_WaitForTheRecordsBeforeThem(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	transact(t, c, kgo.TryCommit, kgo.TryAbort) // offsets 0 to 3
	release, done := make(chan struct{}), make(chan error, 1)
	read := make(chan *kafka.Assignment, 1)
	run(t, fast(c), small(), func(ctx context.Context, a *kafka.Assignment) error {
		b, err := a.Fetch(ctx)
		if err != nil {
			return err
		}
		read <- a
		<-release
		done <- a.Commit(ctx, settle(b))
		<-a.Leaving().Done()
		return nil
	})
	a := <-read
	kafkatest.Eventually(t, "all is read", func() bool { return kafka.Position(a) == 4 })
	kafka.CommitMarks(a)
	if at, ok := c.Committed(t, group, topic)[0]; ok {
		t.Errorf("%d was committed before the record had its home", at)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	kafkatest.Eventually(t, "all is committed", func() bool { return c.Committed(t, group, topic)[0] == 4 })
}

func TestMarks_OfARunOnceAreCommittedAtItsEnd(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	transact(t, c, kgo.TryAbort)
	sc := small()
	sc.Once = true
	m := run(t, fast(c), sc, func(ctx context.Context, a *kafka.Assignment) error {
		for {
			next, end, err := a.Bounds(ctx)
			if err != nil || next >= end {
				return err
			}
		}
	})
	<-m.done
	if at := c.Committed(t, group, topic)[0]; m.err != nil || at != 2 {
		t.Errorf("err %v, committed %d, want 2", m.err, at)
	}
}
