//go:build integration

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testenv"
)

// TestHoldOf200PartitionsStaysWithinItsMemory has sets that inflate to 1 MB on each of 200 partitions, and a table that takes nothing for
// a while: the limit of a consumer's container is 256 MiB.
func TestHoldOf200PartitionsStaysWithinItsMemory(t *testing.T) {
	t.Parallel()
	const partitions, each, limit = 200, 30, 256 // MiB
	s := partitioned(t, testenv.OwnKafka(t), testenv.OwnPostgresWith(t, testenv.PostgresOptions{Settings: []string{"max_connections=400"}}), partitions)
	input := `,"input":[` + strings.TrimSuffix(strings.Repeat(`{"name":"alice","roles":["a","b"]},`, 1000), ",") + `]`
	client, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.DefaultProduceTopic(s.places.Topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(16<<20), kgo.MaxBufferedBytes(64<<20), kgo.ProducerLinger(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for p := range int32(partitions) {
		var set []*kgo.Record
		for i := range each {
			set = append(set, &kgo.Record{Partition: p, Value: []byte(logOf(fmt.Sprintf("%d-%d", p, i), input))})
		}
		if err := client.ProduceSync(t.Context(), set...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.exec("ALTER TABLE decision_logs RENAME TO elsewhere")
	c := s.consumer("DOCKET_BATCH_MAX_RECORDS=5000", "DOCKET_MAX_RECORD_BYTES=16MiB")
	c.awaitHold("database_refuses")
	eventually(t, 5*time.Minute, "all partitions hold", func() error {
		if n := c.metric(`docket_store_failures_total{class="systemic",code="42P01"}`); n < partitions {
			return fmt.Errorf("%v of them", n)
		}
		return nil
	})
	t.Logf("all hold, %d MiB", status(t, c.cmd.Process.Pid, "VmHWM"))
	s.exec("ALTER TABLE elsewhere RENAME TO decision_logs")
	db := s.connect()
	eventually(t, 5*time.Minute, "all have their rows", func() error {
		var n int
		if err := db.QueryRow(t.Context(), "SELECT count(*) FROM decision_logs").Scan(&n); err != nil || n != partitions*each {
			return fmt.Errorf("%d rows, %w", n, err)
		}
		return nil
	})
	mib := status(t, c.cmd.Process.Pid, "VmHWM")
	if t.Logf("all are stored, %d MiB", mib); mib > limit {
		t.Errorf("%d MiB were resident", mib)
	}
	c.sound()
}

// status is a line of what the kernel says of a process's memory, in MiB.
func status(t *testing.T, pid int, line string) (mib int64) {
	t.Helper()
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(all)) {
		if kib, ok := strings.CutPrefix(l, line+":"); ok {
			if _, err := fmt.Sscan(kib, &mib); err != nil {
				t.Fatal(err)
			}
			return mib >> 10
		}
	}
	t.Fatalf("the kernel says nothing of %s", line)
	return 0
}
