package kafkatest

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AppendRecord encodes one record of a set, with this many empty headers.
func AppendRecord(to []byte, offset int, value []byte, headers int) []byte {
	body := []byte{0}
	body = binary.AppendVarint(body, 0)
	body = binary.AppendVarint(body, int64(offset))
	body = binary.AppendVarint(body, -1)
	if value == nil {
		body = binary.AppendVarint(body, -1)
	} else {
		body = append(binary.AppendVarint(body, int64(len(value))), value...)
	}
	body = append(binary.AppendVarint(body, int64(headers)), make([]byte, 2*headers)...)
	return append(binary.AppendVarint(to, int64(len(body))), body...)
}

// Set makes a set of n records as a producer sends it.
func Set(t testing.TB, records []byte, n int, codec kgo.CompressionCodec) []byte {
	t.Helper()
	compressor, err := kgo.DefaultCompressor(codec)
	if err != nil {
		t.Fatal(err)
	}
	which := kgo.CodecNone
	if compressor != nil {
		records, which = compressor.Compress(new(bytes.Buffer), records)
	}
	set := kmsg.NewRecordBatch()
	set.Magic, set.Attributes = 2, int16(which)
	set.NumRecords, set.LastOffsetDelta = int32(n), int32(n-1)
	set.PartitionLeaderEpoch, set.ProducerID, set.ProducerEpoch, set.FirstSequence = -1, -1, -1, -1
	set.FirstTimestamp = time.Now().UnixMilli()
	set.MaxTimestamp, set.Records = set.FirstTimestamp, slices.Clone(records)
	all := set.AppendTo(nil)
	binary.BigEndian.PutUint32(all[8:], uint32(len(all)-12))
	binary.BigEndian.PutUint32(all[17:], crc32.Checksum(all[21:], crc32.MakeTable(crc32.Castagnoli)))
	return all
}

// Write appends a set to partitions of a topic, unchanged. It waits for leaders.
func Write(t testing.TB, client *kgo.Client, topic string, set []byte, partitions ...int32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	for _, p := range partitions {
		Eventually(t, "a leader takes a set", func() bool {
			meta, err := kadm.NewClient(client).Metadata(ctx, topic)
			if err != nil {
				t.Fatal(err)
			}
			leader := meta.Topics[topic].Partitions[p].Leader
			if _, there := meta.Topics[topic].Partitions[p]; !there || leader < 0 {
				return false
			}
			err = appendOnce(ctx, client.Broker(int(leader)), meta.Topics[topic], set, p)
			if err != nil && !kerr.IsRetriable(err) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
}

// appendOnce sends one request to append a set.
func appendOnce(ctx context.Context, leader *kgo.Broker, topic kadm.TopicDetail, set []byte, partition int32) error {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 20000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID = topic.Topic, topic.ID
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, set
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, leader)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}
