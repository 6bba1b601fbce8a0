//go:build integration

package e2e

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/testenv"
)

// tinyRecords are n records without a key and a value.
func tinyRecords(n int) (records []byte) {
	for i := range n {
		records = kafkatest.AppendRecord(records, i, nil, 0)
	}
	return records
}

// TestSets_TinyRecordsAndManyHeaders has a million records in one set, and a million headers on one record, in each codec. Each such set
// holds its partition. Smaller ones and all other partitions continue. The limit of a consumer's container is 256 MiB.
func TestSets_TinyRecordsAndManyHeaders(t *testing.T) {
	t.Parallel()
	const million, fewer = 1_000_000, 30_000
	k := testenv.OwnKafkaWith(t, testenv.KafkaOptions{Env: map[string]string{ // it has much to do, and is not dead then
		"KAFKA_BROKER_SESSION_TIMEOUT_MS": "30000", "KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "2000",
	}})
	headers := func(id string, n int) []byte { return kafkatest.AppendRecord(nil, 0, []byte(logOf(id, "")), n) }
	t.Run("records", func(t *testing.T) {
		t.Parallel()
		small := kafkatest.Set(t, tinyRecords(fewer), fewer, kgo.ZstdCompression())
		s := largeSets(t, k, tinyRecords(million), million, small)
		s.commits(s.beside, fewer+10)
	})
	t.Run("headers", func(t *testing.T) {
		t.Parallel()
		s := largeSets(t, k, headers("bomb", million), 1, kafkatest.Set(t, headers("headers-0", million/2), 1, kgo.NoCompression()))
		s.keeps("headers", 1)
	})
}

// sets is a system with sets that are too large in all partitions but one.
type sets struct {
	*system
	beside int32 // the other one
}

// largeSets sees a set of so many records hold its partition in each codec, and a small set and other records be carried beside them.
func largeSets(t *testing.T, k *testenv.KafkaServer, records []byte, n int, small []byte) sets {
	t.Helper()
	const limit = 256 // MiB
	s := bareSystem(t, k, testenv.Postgres(t).Database(t))
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	beside := int32(len(codecs))
	k.CreateTopic(t, s.places.Topic, beside+1, map[string]string{"max.message.bytes": "16777216"})
	for _, topic := range []string{s.places.DLQTopic, s.places.ParkingTopic, s.places.ParkingDLQ} {
		k.CreateTopic(t, topic, 1, nil)
	}
	s.migrate()
	cl := s.client()
	for i, codec := range codecs {
		kafkatest.Write(t, cl, s.places.Topic, kafkatest.Set(t, records, n, codec), int32(i))
	}
	kafkatest.Write(t, cl, s.places.Topic, small, beside)
	s.sendTo(beside, "beside", 10)
	s.sendTo(0, "behind", 10)

	c := s.consumer("DOCKET_BATCH_MAX_RECORDS=5000", "DOCKET_MAX_RECORD_BYTES=16MiB") // the defaults
	s.keeps("beside", 10)
	for p := range beside { // fewer lines than are left out of the log
		eventually(t, patience, fmt.Sprintf("partition %d holds", p), func() error {
			return c.logged("kafka fault began", map[string]string{"reason": "set_too_large", "partition": fmt.Sprint(p)}, fmt.Sprintf(":%d --reset-offsets --to-offset %d ", p, n))
		})
	}
	hint := c.hint("set_too_large") // of the first partition, as all hold now
	mib := status(t, c.cmd.Process.Pid, "VmHWM")
	if t.Logf("%d MiB", mib); mib > limit {
		t.Errorf("%d MiB were resident", mib)
	}
	c.stop()
	s.follow(k.Handle(), hint)
	s.commits(0, int64(n))
	s.consumer("DOCKET_BATCH_MAX_RECORDS=5000", "DOCKET_MAX_RECORD_BYTES=16MiB")
	s.keeps("behind", 10)
	return sets{s, beside}
}
