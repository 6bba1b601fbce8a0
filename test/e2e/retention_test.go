//go:build integration

package e2e

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"docket/internal/testkit/testenv"
)

// retain deletes what a partition of the source has before an offset, as retention does.
func (s *system) retain(partition int32, from int64) {
	s.t.Helper()
	to := kadm.Offsets{}
	to.AddOffset(s.places.Topic, partition, from, -1)
	deleted, err := s.admin().DeleteRecords(s.t.Context(), to)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		s.t.Fatalf("delete records: %v", err)
	}
}

// TestRetention_OvertakesTheConsumer deletes records that were not read, first while the consumer is stopped, then while it holds. The
// partition holds until somebody follows the hint. The other one continues.
func TestRetention_OvertakesTheConsumer(t *testing.T) {
	t.Parallel()
	k := testenv.Kafka(t)
	s := partitioned(t, k, testenv.Postgres(t), 2)
	c := s.consumer()
	s.sendTo(0, "first", 5)
	s.commits(0, 5)
	c.stop()
	s.sendTo(0, "gone", 5)
	s.sendTo(0, "left", 5)
	s.retain(0, 10)
	s.sendTo(1, "beside", 5)

	c = s.consumer()
	hint := c.hint("kafka_out_of_range")
	s.keeps("beside", 5)
	if n := s.rows("true"); n != 10 {
		t.Errorf("%d rows, want 10: nothing is read over a gap", n)
	}
	c.stop()
	s.follow(k.Handle(), hint)
	s.commits(0, 10)
	c = s.consumer()
	s.keeps("left", 5)
	s.commits(0, 15)

	s.exec("ALTER TABLE decision_logs RENAME TO elsewhere")
	s.sendTo(0, "held", 1)
	c.awaitHold("database_refuses")
	s.sendTo(0, "missed", 4)
	s.sendTo(0, "after", 5)
	s.retain(0, 20)
	s.exec("ALTER TABLE elsewhere RENAME TO decision_logs")
	s.keeps("held", 1) // it was in hand
	hint = c.hint("kafka_out_of_range")
	s.sendTo(1, "aside", 5)
	s.keeps("aside", 5)
	s.commits(0, 16)
	c.stop()
	s.follow(k.Handle(), hint)
	c = s.consumer()
	s.keeps("after", 5)
	s.commits(0, 25)
	s.settles(c, 26)
}
