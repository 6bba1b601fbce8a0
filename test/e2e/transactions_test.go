//go:build integration

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// TestTransactions_AbortedTail has a transaction that is aborted at the end of a partition. The consumer commits up to the end, so that
// retention may take all of it, and continues from there in its next life.
func TestTransactions_AbortedTail(t *testing.T) {
	t.Parallel()
	s := partitioned(t, testenv.Kafka(t), testenv.Postgres(t), 1)
	c := s.consumer()
	s.transact("kept", 3, kgo.TryCommit)
	s.keeps("kept", 3)
	s.commits(0, 4)
	s.transact("aborted", 40, kgo.TryAbort) // no record comes after it
	s.commits(0, 45)
	eventually(t, patience, "the lag is 0", func() error {
		_, body := c.get("/metrics")
		if series := fmt.Sprintf("docket_consumer_lag{partition=\"0\",topic=%q} 0\n", s.places.Topic); !strings.Contains(body, series) {
			return fmt.Errorf("no %s", series)
		}
		return nil
	})
	s.verify(0, "--settled")
	c.sound()
	if code := c.stop(); code != 0 {
		t.Errorf("exit %d", code)
	}

	s.retain(0, 45)
	s.transact("later", 2, kgo.TryCommit)
	c = s.consumer()
	s.keeps("later", 2)
	s.commits(0, 48)
	s.settles(c, 5)
	if strings.Contains(c.out.String(), "kafka fault") {
		t.Error("the second life met a fault")
	}
}

// transact writes decisions in a transaction of their own.
func (s *system) transact(name string, n int, end kgo.TransactionEndTry) {
	s.t.Helper()
	cl := s.client(kgo.TransactionalID(s.places.Topic))
	if err := cl.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	for i := range n {
		if err := cl.ProduceSync(s.t.Context(), kgo.StringRecord(logOf(fmt.Sprintf("%s-%d", name, i), ""))).FirstErr(); err != nil {
			s.t.Fatalf("produce: %v", err)
		}
	}
	if err := cl.EndTransaction(s.t.Context(), end); err != nil {
		s.t.Fatalf("end the transaction: %v", err)
	}
}
