package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// refuseSets has the brokers refuse each set with a record of this value, as they do where one has no key for a compacted topic.
// They look at sets of up to so many bytes. It returns how many sets they got.
func refuseSets(c *kafkatest.Cluster, value []byte, upTo int) (sets *atomic.Int64) {
	sets = new(atomic.Int64)
	c.ControlKey(int16(kmsg.Produce), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		sets.Add(1)
		r := asked.(*kmsg.ProduceRequest)
		resp := r.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range r.Topics {
			of := kmsg.ProduceResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
			for _, p := range topic.Partitions {
				if len(p.Records) > upTo || !holds(p.Records, value) {
					return nil, nil, false
				}
				answer := kmsg.NewProduceResponseTopicPartition()
				answer.Partition, answer.ErrorCode = p.Partition, kerr.InvalidRecord.Code
				of.Partitions = append(of.Partitions, answer)
			}
			resp.Topics = append(resp.Topics, of)
		}
		return resp, nil, true
	})
	return sets
}

// holds reports whether a compressed set has a value of noise. LZ4 keeps its bytes as they are, but for parts that were there
// before.
func holds(set, value []byte) bool {
	for part := range slices.Chunk(value, 8) {
		if bytes.Contains(set, part) {
			return true
		}
	}
	return false
}

// A broker refuses a whole set for one record without a key. The others are acknowledged all the same. Where it refuses many, a
// call has so many requests at most, and another call has others their turn.
func TestPublish_SetWithInvalidRecords(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, kafkatest.Timeout)
		invalid := noise(24)
		sets := refuseSets(c, invalid, math.MaxInt)
		records := forwarded(40)
		records[17].Value = invalid
		for i, err := range p.Publish(context.Background(), records) {
			if (i == 17) != errors.Is(err, kerr.InvalidRecord) || (i != 17) != (err == nil) {
				t.Errorf("record %d: %v", i, err)
			}
		}
		if there := c.ReadAll(t, dlq); len(there) != 39 {
			t.Errorf("%d records are there, want 39", len(there))
		}
		if n := sets.Load(); n > 20 { // not one for each record
			t.Errorf("%d requests", n)
		}
		for _, r := range records {
			r.Value = invalid
		}
		records = slices.Concat(records, records, records, records)
		sets.Store(0)
		for i, err := range p.Publish(context.Background(), records) {
			if !errors.Is(err, kerr.InvalidRecord) {
				t.Errorf("record %d: %v", i, err)
			}
		}
		if n := sets.Load(); n > 260 { // 200 parts, of which the client sends some in two requests; without a limit they are 319
			t.Errorf("%d requests", n)
		}
	}, kfake.SeedTopics(1, dlq))
}

// Sets that are halved for an invalid record are never taken for records that are too large alone.
func TestPublish_InvalidRecordsOfASmallTopic(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		const limit, n, size = 5000, 200, 200
		if err := c.CreateTopic(dlq, 1, map[string]string{"max.message.bytes": strconv.Itoa(limit)}); err != nil {
			t.Fatal(err)
		}
		p := publisher(t, c, kafkatest.Timeout)
		invalid := noise(24)
		refuseSets(c, invalid, limit)
		records, all := forwarded(n), noise((n + 1) * size)[size:] // without the beginning, which is that of all noise
		bad := 0
		for i, r := range records {
			r.Value = all[i*size : (i+1)*size]
			if i%20 == 7 {
				r.Value = invalid
				bad++
			}
		}
		for i, err := range p.Publish(context.Background(), records) {
			if wrong := i%20 == 7; wrong != errors.Is(err, kerr.InvalidRecord) || !wrong && err != nil {
				t.Errorf("record %d: %v", i, err)
			}
		}
		if there := c.ReadAll(t, dlq); len(there) != n-bad {
			t.Errorf("%d records are there, want %d", len(there), n-bad)
		}
	})
}

// A call sends so many parts of refused sets at most. A record that was too large only together with others is not told to be too
// large: its sender would make a dead letter of it.
func TestPublish_PartsThatWereNotSent(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		var sets atomic.Int64
		c.ControlKey(int16(kmsg.Produce), func(asked kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			answer := kmsg.NewProduceResponseTopicPartition()
			answer.ErrorCode = kerr.InvalidRecord.Code
			if sets.Add(1) > 1 { // the limit of the topic was lowered meanwhile
				answer.ErrorCode = kerr.MessageTooLarge.Code
			}
			r := asked.(*kmsg.ProduceRequest)
			resp := r.ResponseKind().(*kmsg.ProduceResponse)
			resp.Topics = []kmsg.ProduceResponseTopic{{Topic: r.Topics[0].Topic, TopicID: r.Topics[0].TopicID, Partitions: []kmsg.ProduceResponseTopicPartition{answer}}}
			return resp, nil, true
		})
		p, err := kafka.NewPublisher(fast(c), kafka.PublisherConfig{Timeout: kafkatest.Timeout, Linger: time.Millisecond}, zerolog.Nop(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for i, err := range p.Publish(context.Background(), forwarded(4000)) { // the last parts have some 15
			if !errors.Is(err, kerr.InvalidRecord) {
				t.Fatalf("record %d: %v", i, err)
			}
		}
	}, kfake.SeedTopics(1, dlq))
}
