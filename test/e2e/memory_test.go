//go:build integration

package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/testenv"
)

// TestHoldOf200Partitions_Memory has sets that inflate to 1 MB on each of 200 partitions, and a table that takes nothing for
// a while: the limit of a consumer's container is 256 MiB.
func TestHoldOf200Partitions_Memory(t *testing.T) {
	t.Parallel()
	const partitions, each, limit = 200, 30, 256 // MiB
	s := partitioned(t, testenv.OwnKafka(t), testenv.OwnPostgresWith(t, testenv.PostgresOptions{Settings: []string{"max_connections=400"}}), partitions)
	input := `,"input":[` + strings.TrimSuffix(strings.Repeat(`{"name":"alice","roles":["a","b"]},`, 1000), ",") + `]`
	client, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(s.places.Topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
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

// TestHoldWithLargeRecords_Memory has records of some kilobytes that are 15 MiB once they are inflated. Some
// have 100,000 decisions, one at the front of each partition. The table takes nothing for a while.
func TestHoldWithLargeRecords_Memory(t *testing.T) {
	t.Parallel()
	const partitions, many, decisions, limit = 40, 4, 100_000, 256 // MiB
	s := partitioned(t, testenv.OwnKafka(t), testenv.OwnPostgresWith(t, testenv.PostgresOptions{Settings: []string{"max_connections=100"}}), partitions)
	client, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1), kgo.DefaultProduceTopic(s.places.Topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(16<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for p := range int32(partitions) {
		text := []byte(logOf(fmt.Sprint(p), `,"input":"`+strings.Repeat("x", 15<<20)+`"`))
		if p < many {
			text = text[:0]
			for i := range decisions {
				text = append(append(text, logOf(fmt.Sprintf("%d-%d", p, i), "")...), '\n')
			}
		}
		if err := client.ProduceSync(t.Context(), &kgo.Record{Partition: p, Value: gzipped(t, text)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s.exec("ALTER TABLE decision_logs RENAME TO elsewhere")
	c := s.consumer("DOCKET_MAX_RECORD_BYTES=16MiB")
	c.awaitHold("database_refuses")
	awaitQuiet(t, c.cmd.Process.Pid)
	t.Logf("all wait, %d MiB", status(t, c.cmd.Process.Pid, "VmHWM"))
	s.exec("ALTER TABLE elsewhere RENAME TO decision_logs")
	db := s.connect()
	eventually(t, 10*time.Minute, "all have their rows", func() error {
		var n int
		if err := db.QueryRow(t.Context(), "SELECT count(*) FROM decision_logs").Scan(&n); err != nil || n != many*decisions+partitions-many {
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

// awaitQuiet waits until a process used hardly any processor time for some seconds.
func awaitQuiet(t *testing.T, pid int) {
	t.Helper()
	const span, little = 3 * time.Second, 30 // hundredths of a second
	last, since := int64(-1), time.Now()
	eventually(t, 5*time.Minute, "the process is quiet", func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		user, err := strconv.ParseInt(fields[11], 10, 64)
		if err != nil {
			return err
		}
		if last < 0 || user-last > little {
			last, since = user, time.Now()
		}
		if time.Since(since) < span {
			return fmt.Errorf("%d hundredths of a second used", user)
		}
		return nil
	})
}

func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	gz := gzip.NewWriter(&z)
	if _, err := gz.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
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
