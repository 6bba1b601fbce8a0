//go:build integration

package e2e

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/kafkatest"
	"docket/internal/testenv"
)

// tinyRecords are n records without a key and a value.
func tinyRecords(n int) (records []byte) {
	for i := range n {
		records = kafkatest.AppendRecord(records, i, nil, 0)
	}
	return records
}

// TestSets_TinyRecordsAndManyHeaders has a million records in one set, and a million headers on one record, in each codec. Each such set
// holds its partition; smaller ones and all other partitions go on. The limit of a consumer's container is 256 MiB.
func TestSets_TinyRecordsAndManyHeaders(t *testing.T) {
	t.Parallel()
	const many, fewer, limit = 1_000_000, 30_000, 256                         // MiB
	k := testenv.OwnKafkaWith(t, testenv.KafkaOptions{Env: map[string]string{ // it has much to do, and is not dead then
		"KAFKA_BROKER_SESSION_TIMEOUT_MS": "30000", "KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "2000",
	}})
	s := bareSystem(t, k, testenv.Postgres(t).Database(t))
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	large := int32(2 * len(codecs)) // partitions from here on have no large sets
	k.CreateTopic(t, s.places.Topic, large+2, map[string]string{"max.message.bytes": "16777216"})
	for _, topic := range []string{s.places.DLQTopic, s.places.ParkingTopic, s.places.ParkingDLQ} {
		k.CreateTopic(t, topic, 1, nil)
	}
	s.migrate()
	cl := s.client()
	tiny, headers := tinyRecords(many), kafkatest.AppendRecord(nil, 0, []byte(logOf("bomb", "")), many)
	for i, codec := range codecs {
		kafkatest.Write(t, cl, s.places.Topic, kafkatest.Set(t, tiny, many, codec), int32(2*i))
		kafkatest.Write(t, cl, s.places.Topic, kafkatest.Set(t, headers, 1, codec), int32(2*i+1))
	}
	kafkatest.Write(t, cl, s.places.Topic, kafkatest.Set(t, tinyRecords(fewer), fewer, kgo.ZstdCompression()), large)
	headers = kafkatest.AppendRecord(nil, 0, []byte(logOf("headers-0", "")), many/2)
	kafkatest.Write(t, cl, s.places.Topic, kafkatest.Set(t, headers, 1, kgo.NoCompression()), large+1)
	s.sendTo(large+1, "beside", 10)
	s.sendTo(0, "behind", 10)

	c := s.consumer("DOCKET_BATCH_MAX_RECORDS=5000", "DOCKET_MAX_RECORD_BYTES=16MiB") // the defaults
	s.keeps("beside", 10)
	s.keeps("headers", 1)
	s.commits(large, fewer)
	for p := range large {
		end := 1
		if p%2 == 0 {
			end = many
		}
		eventually(t, patience, fmt.Sprintf("partition %d holds", p), func() error {
			return c.logged("kafka fault began", map[string]string{"reason": "set_too_large", "partition": fmt.Sprint(p)}, fmt.Sprintf(":%d --reset-offsets --to-offset %d ", p, end))
		})
	}
	hint := c.hint("set_too_large") // of the first partition, as all hold now
	mib := status(t, c.cmd.Process.Pid, "VmHWM")
	if t.Logf("%d MiB", mib); mib > limit {
		t.Errorf("%d MiB were resident", mib)
	}
	c.stop()
	s.follow(k.Handle(), hint)
	s.commits(0, many)
	c = s.consumer("DOCKET_BATCH_MAX_RECORDS=5000", "DOCKET_MAX_RECORD_BYTES=16MiB")
	s.keeps("behind", 10)
}
