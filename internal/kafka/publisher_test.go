package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

const dlq = "decision-logs-dlq"

// virtually runs a test on a cluster in virtual time. A busy machine cannot miss a deadline there.
func virtually(t *testing.T, test func(*testing.T, *kafkatest.Cluster), opts ...kfake.Opt) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.NewVirtual(t, opts...)
		t.Cleanup(c.Close)
		test(t, c)
	})
}

func publisher(t testing.TB, c *kafkatest.Cluster, timeout time.Duration) *kafka.Publisher {
	t.Helper()
	p, err := kafka.NewPublisher(fast(c), kafka.PublisherConfig{Timeout: timeout}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func forwarded(n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: dlq, Key: fmt.Appendf(nil, "key-%d", i), Value: fmt.Appendf(nil, "value-%d", i),
			Headers: []kgo.RecordHeader{{Key: "x-failure-kind", Value: []byte("data")}}}
	}
	return records
}

func TestPublish_ByteForByte(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, dlq))
	p := publisher(t, c, kafkatest.Timeout)
	records := forwarded(100)
	records[7].Value, records[8].Key = nil, nil
	for i, err := range p.Publish(context.Background(), records) {
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	got := c.ReadAll(t, dlq)
	if len(got) != 100 {
		t.Fatalf("%d records", len(got))
	}
	for i, r := range got {
		w := records[i]
		if !bytes.Equal(r.Key, w.Key) || !bytes.Equal(r.Value, w.Value) || (r.Value == nil) != (w.Value == nil) || len(r.Headers) != 1 {
			t.Errorf("record %d: %q %q", i, r.Key, r.Value)
		}
	}
}

func TestPublish_PartitionByKey(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(5, dlq))
	p := publisher(t, c, kafkatest.Timeout)
	for n := range int32(10) {
		r := forwarded(1)[0]
		r.Partition = n // of the source topic: more partitions than here
		if err := p.Publish(context.Background(), []*kgo.Record{r})[0]; err != nil {
			t.Fatal(err)
		}
	}
	got := c.ReadAll(t, dlq)
	for _, r := range got {
		if r.Partition != got[0].Partition {
			t.Errorf("partitions %d and %d", r.Partition, got[0].Partition)
		}
	}
}

func TestPlace_EachRecord(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(5, dlq))
	p := publisher(t, c, kafkatest.Timeout)
	records := forwarded(200)
	records[13].Value = make([]byte, 1_100_000) // sent by itself
	placed, errs := p.Place(context.Background(), records)
	at := map[kafka.Place]string{}
	for _, r := range c.ReadAll(t, dlq) {
		at[kafka.Place{Partition: r.Partition, Offset: r.Offset}] = string(r.Key)
	}
	if len(at) != len(records) {
		t.Fatalf("%d records are there", len(at))
	}
	for i, r := range records {
		if errs[i] != nil || at[placed[i]] != string(r.Key) {
			t.Errorf("record %d: %v; at %+v there is %q", i, errs[i], placed[i], at[placed[i]])
		}
	}
}

func TestPublish_DeadlineOnASilentBroker(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.Produce, kmsg.InitProducerID, kmsg.Metadata} {
		t.Run(key.Name(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := kafkatest.NewVirtual(t, kfake.SeedTopics(1, dlq))
				defer c.Close()
				heal := c.Mute(key)
				p, err := kafka.NewPublisher(fast(c), kafka.PublisherConfig{Timeout: 3 * time.Second}, zerolog.Nop(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				began := time.Now()
				errs := p.Publish(t.Context(), forwarded(3))
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("took %v", took)
				}
				for _, err := range errs {
					if !errors.Is(err, kafka.ErrUnanswered) {
						t.Errorf("got %v", err)
					}
				}
				heal()
				for tries := 0; ; tries++ {
					if errors.Join(p.Publish(t.Context(), forwarded(3))...) == nil {
						return
					}
					if tries == 10 {
						t.Fatal("never recovers")
					}
				}
			})
		})
	}
}

func TestPublish_LostAnswerIsAnError(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, time.Second)
		heal := c.LoseAnswers(dlq)
		errs := p.Publish(context.Background(), forwarded(3))
		heal()
		for _, err := range errs {
			if err == nil {
				t.Error("a record whose answer was lost counts as acknowledged")
			}
		}
		if len(c.ReadAll(t, dlq)) == 0 {
			t.Error("the fault was to store the records")
		}
		if err := errors.Join(p.Publish(context.Background(), forwarded(3))...); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}, kfake.SeedTopics(1, dlq))
}

func TestPublish_OneTooLargeAmongMany(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		limit := "5000"
		if err := c.CreateTopic(dlq, 1, map[string]string{"max.message.bytes": limit}); err != nil {
			t.Fatal(err)
		}
		p := publisher(t, c, kafkatest.Timeout)
		records := forwarded(99)
		records[42].Value = noise(9000)
		records[77].Value = make([]byte, 1_100_000) // too large for a client's batch, small on the wire
		for i, err := range p.Publish(context.Background(), records) {
			if (i == 42) != errors.Is(err, kerr.MessageTooLarge) || (i != 42) != (err == nil) {
				t.Errorf("record %d: %v", i, err)
			}
		}
		count := map[string]int{}
		for _, r := range c.ReadAll(t, dlq) {
			count[string(r.Key)]++
		}
		if len(count) != 98 || count["key-42"] != 0 {
			t.Errorf("%d keys are there, key-42 %d times", len(count), count["key-42"])
		}
	})
}

// A broker refuses a set beyond the topic's segment.bytes by another code than one beyond max.message.bytes. Each record is
// then sent alone, and one that is refused alone is too large.
func TestPublish_SetBeyondTheSegment(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		const segment = 20_000
		p := publisher(t, c, kafkatest.Timeout)
		c.ControlKey(int16(kmsg.Produce), func(asked kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			r := asked.(*kmsg.ProduceRequest)
			topic := r.Topics[0]
			if len(topic.Partitions[0].Records) < segment {
				return nil, nil, false
			}
			answer := kmsg.NewProduceResponseTopicPartition()
			answer.Partition, answer.ErrorCode = topic.Partitions[0].Partition, kerr.RecordListTooLarge.Code
			resp := r.ResponseKind().(*kmsg.ProduceResponse)
			resp.Topics = []kmsg.ProduceResponseTopic{{Topic: topic.Topic, TopicID: topic.TopicID, Partitions: []kmsg.ProduceResponseTopicPartition{answer}}}
			return resp, nil, true
		})
		records, all := forwarded(40), noise(40*1000)
		for i, r := range records {
			r.Value = all[i*1000 : (i+1)*1000]
		}
		records[17].Value = noise(segment + 1000)
		for i, err := range p.Publish(context.Background(), records) {
			if (i == 17) != errors.Is(err, kerr.MessageTooLarge) || (i != 17) != (err == nil) {
				t.Errorf("record %d: %v", i, err)
			}
		}
		if there := c.ReadAll(t, dlq); len(there) != 39 {
			t.Errorf("%d records are there, want 39", len(there))
		}
	}, kfake.SeedTopics(1, dlq))
}

func TestPublish_RefusedTogetherIsNotTooLarge(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, 2*time.Second)
		// The whole set is refused, and then no broker answers.
		c.Fail(kmsg.Produce, kerr.MessageTooLarge, 1)
		refused := c.Watch(kmsg.Produce, func(kmsg.Request) {})
		defer refused()
		records := forwarded(3)
		var once sync.Once
		c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			first := false
			once.Do(func() { first = true })
			return nil, nil, !first
		})
		for i, err := range p.Publish(context.Background(), records) {
			if err == nil || errors.Is(err, kerr.MessageTooLarge) {
				t.Errorf("record %d: %v", i, err)
			}
		}
	}, kfake.SeedTopics(1, dlq))
}

func TestPublish_MissingTopicWithinTheDeadline(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, 3*time.Second)
		began := time.Now()
		for _, err := range p.Publish(context.Background(), forwarded(3)) {
			if err == nil {
				t.Error("published to a topic that does not exist")
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("took %v", took)
		}
		if err := c.CreateTopic(dlq, 1, nil); err != nil {
			t.Fatal(err)
		}
		kafkatest.Eventually(t, "it works once the topic is there", func() bool {
			return errors.Join(p.Publish(context.Background(), forwarded(1))...) == nil
		})
	})
}

func TestPublish_ForgottenProducerRecovers(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch, kerr.NotEnoughReplicas, kerr.NotLeaderForPartition} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.New(t, kfake.SeedTopics(1, dlq))
			p := publisher(t, c, kafkatest.Timeout)
			c.Fail(kmsg.Produce, code, 1)
			acknowledged := map[string]bool{}
			for try := 0; len(acknowledged) < 10 && try < 5; try++ {
				records := forwarded(10)
				for i, err := range p.Publish(context.Background(), records) {
					if err == nil {
						acknowledged[string(records[i].Key)] = true
					}
				}
			}
			stored := map[string]bool{}
			for _, r := range c.ReadAll(t, dlq) {
				stored[string(r.Key)] = true
			}
			if len(acknowledged) != 10 || len(stored) != 10 {
				t.Errorf("%d acknowledged, %d stored", len(acknowledged), len(stored))
			}
		})
	}
}

func TestPublish_CutConnectionIsAnError(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, time.Second)
		heal := c.HangUp(kmsg.Produce)
		for _, err := range p.Publish(context.Background(), forwarded(3)) {
			if err == nil {
				t.Error("counts as acknowledged")
			}
		}
		heal()
		kafkatest.Eventually(t, "it recovers", func() bool { return errors.Join(p.Publish(context.Background(), forwarded(1))...) == nil })
	}, kfake.SeedTopics(1, dlq))
}

func TestPublish_ErrorsNameNoPayload(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, 500*time.Millisecond)
		r := &kgo.Record{Topic: dlq, Key: []byte("secret-key"), Value: []byte("secret-value")}
		err := p.Publish(context.Background(), []*kgo.Record{r})[0]
		if err == nil || !strings.Contains(err.Error(), dlq) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	})
}

// TestPublish_ReadsNothingAfterItsAnswer writes over records as soon as they are acknowledged. Some answers are lost, so
// that the client sends their sets again. The broker has all that was acknowledged, byte for byte.
func TestPublish_ReadsNothingAfterItsAnswer(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(3, dlq))
	p := publisher(t, c, kafkatest.Timeout)
	requests := atomic.Int64{}
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if requests.Add(1)%10 == 0 {
			return nil, errors.New("cut"), true
		}
		return nil, nil, false
	})
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var all sync.WaitGroup
	for writer := range 8 {
		all.Go(func() {
			for n := range 20 {
				records := forwarded(50)
				var keys []string
				for i, r := range records {
					r.Key = fmt.Appendf(nil, "%d/%d/%d", writer, n, i)
					r.Value = bytes.Repeat(append(r.Key, ' '), 20+i)
					keys = append(keys, string(r.Key))
				}
				for i, err := range p.Publish(context.Background(), records) {
					if err != nil {
						continue
					}
					for _, b := range [][]byte{records[i].Key, records[i].Value, records[i].Headers[0].Value} {
						for j := range b {
							b[j] = 0xDB
						}
					}
					mu.Lock()
					acknowledged[keys[i]] = true
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for _, r := range c.ReadAll(t, dlq) {
		if !strings.HasPrefix(string(r.Value), string(r.Key)+" ") || strings.Trim(string(r.Value), string(r.Key)+" ") != "" || string(r.Headers[0].Value) != "data" {
			t.Fatalf("%q holds %.40q", r.Key, r.Value)
		}
		delete(acknowledged, string(r.Key))
	}
	if len(acknowledged) > 0 || requests.Load() < 10 {
		t.Errorf("%d acknowledged records are not there, after %d requests", len(acknowledged), requests.Load())
	}
}

// TestPublish_LargeSet has sets of more than one block, one that does not compress, and one that does.
func TestPublish_LargeSet(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, dlq))
	p := publisher(t, c, kafkatest.Timeout)
	for _, value := range [][]byte{noise(900_000), bytes.Repeat(noise(1000), 900)} {
		r := forwarded(1)[0]
		r.Value = value
		if err := p.Publish(context.Background(), []*kgo.Record{r})[0]; err != nil {
			t.Fatal(err)
		}
	}
	got := c.ReadAll(t, dlq)
	if len(got) != 2 || !bytes.Equal(got[0].Value, noise(900_000)) || !bytes.Equal(got[1].Value, bytes.Repeat(noise(1000), 900)) {
		t.Fatalf("%d records, or others", len(got))
	}
	if of := got[1].Attrs.CompressionType(); of != 3 { // LZ4
		t.Errorf("compression %d", of)
	}
}

func TestPublish_Concurrent(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(3, dlq))
	p := publisher(t, c, kafkatest.Timeout)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				if err := errors.Join(p.Publish(context.Background(), forwarded(20))...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := len(c.ReadAll(t, dlq)); n != 800 {
		t.Errorf("%d records", n)
	}
}

// noise does not compress.
func noise(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func TestPublish_OldRecord(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, 2*time.Second)
		records := forwarded(3)
		for _, r := range records {
			r.Timestamp = time.Now().Add(-48 * time.Hour) // it waited in the spool
		}
		for i, err := range p.Publish(t.Context(), records) {
			if err != nil {
				t.Errorf("record %d: %v", i, err)
			}
		}
		for _, r := range c.ReadAll(t, dlq) {
			if time.Since(r.Timestamp) < 47*time.Hour {
				t.Errorf("the timestamp became %v", r.Timestamp)
			}
		}
	}, kfake.SeedTopics(1, dlq))
}

func TestPublish_ReplacesAClientAfterATimeout(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		reg := prometheus.NewPedanticRegistry()
		p, err := kafka.NewPublisher(fast(c), kafka.PublisherConfig{Timeout: 500 * time.Millisecond}, zerolog.Nop(), reg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		var ids atomic.Int64
		c.Watch(kmsg.InitProducerID, func(kmsg.Request) { ids.Add(1) })
		if err := p.Publish(t.Context(), forwarded(1))[0]; err != nil {
			t.Fatal(err)
		}
		heal := c.Mute(kmsg.Produce)
		if err := p.Publish(t.Context(), forwarded(1))[0]; !errors.Is(err, kafka.ErrUnanswered) {
			t.Errorf("a mute broker: %v", err)
		}
		heal()
		if err := p.Publish(t.Context(), forwarded(1))[0]; err != nil {
			t.Errorf("after the broker is well again: %v", err)
		}
		if ids.Load() < 2 {
			t.Error("the client that was stuck is still in use")
		}
		if _, err := reg.Gather(); err != nil {
			t.Errorf("metrics of the clients collide: %v", err)
		}
	}, kfake.SeedTopics(1, dlq))
}

// TestPublish_SingleKeepsItsDeadline has one call wait for a broker that never answers about its record. Another
// call, with less time, waits behind it.
func TestPublish_SingleKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		c.FailTopic(kmsg.Produce, dlq, kerr.MessageTooLarge, 2)
		var asked atomic.Int32
		c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			return nil, nil, asked.Add(1) == 2 // the first record that is sent by itself
		})
		p, err := kafka.NewPublisher(fast(c), kafka.PublisherConfig{Timeout: 2 * time.Second}, zerolog.Nop(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		first := make(chan struct{})
		go func() { defer close(first); p.Publish(t.Context(), forwarded(1)) }()
		kafkatest.Eventually(t, "the first record is sent by itself", func() bool { return asked.Load() == 2 })
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		errs := p.Publish(ctx, forwarded(1))
		select {
		case <-first:
			t.Error("it waited for the other")
		default:
		}
		if !errors.Is(errs[0], kafka.ErrUnanswered) {
			t.Errorf("got %v", errs[0])
		}
		<-first
	}, kfake.SeedTopics(1, dlq))
}
