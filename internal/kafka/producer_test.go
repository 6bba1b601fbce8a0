package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

func TestPublish_WorksOnceAllowedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []*kerr.Error{kerr.ClusterAuthorizationFailed, kerr.InvalidRequest} {
		t.Run(code.Message, func(t *testing.T) {
			t.Parallel()
			c := kafkatest.New(t, kfake.SeedTopics(1, dlq))
			p := publisher(t, c, 10*time.Second)
			c.Fail(kmsg.InitProducerID, code, 1)
			// It may also be unanswered. The client stores a topic's partitions after it queued the waiting records
			// there. A refusal between the two does not find them (storePartitionsUpdate and failBufferedRecords of
			// franz-go 1.22).
			if err := p.Publish(context.Background(), forwarded(1))[0]; !errors.Is(err, code) && !errors.Is(err, kafka.ErrUnanswered) {
				t.Fatalf("got %v", err)
			}
			kafkatest.Eventually(t, "it publishes once the brokers allow it", func() bool {
				return errors.Join(p.Publish(context.Background(), forwarded(1))...) == nil
			})
		})
	}
}

func TestPublish_ManySmallRecords(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, 20*time.Second)
		c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.SleepControl(func() { time.Sleep(500 * time.Millisecond) })
			return nil, nil, false
		})
		failed := 0
		for _, err := range p.Publish(context.Background(), forwarded(120_000)) {
			if err != nil {
				failed++
			}
		}
		if failed > 0 {
			t.Errorf("%d records were refused by a client whose brokers are well", failed)
		}
	}, kfake.SeedTopics(1, dlq))
}

// TestPublish_MoreThanTheBuffer has records that are many times the buffer of the client. They wait for room while the brokers are
// well. If no broker answers, the deadline ends the call and none counts as acknowledged.
func TestPublish_MoreThanTheBuffer(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		c := kafkatest.New(t, kfake.SeedTopics(1, dlq))
		timeout := time.Minute
		if silent {
			timeout = 2 * time.Second
			c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				return nil, nil, true
			})
		}
		p, err := kafka.NewPublisher(fast(c), kafka.PublisherConfig{Timeout: timeout, MaxBufferedBytes: 1 << 20}, zerolog.Nop(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		records := make([]*kgo.Record, 400)
		for i := range records {
			records[i] = &kgo.Record{Topic: dlq, Value: make([]byte, 50<<10)}
		}
		from := time.Now()
		for i, err := range p.Publish(t.Context(), records) {
			if silent != errors.Is(err, kafka.ErrUnanswered) || !silent && err != nil {
				t.Fatalf("record %d, silent %v: %v", i, silent, err)
			}
		}
		if silent && time.Since(from) > 10*timeout {
			t.Errorf("the call took %v", time.Since(from))
		}
	}
}

func TestClose_EndsRunningCalls(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, dlq))
	p := publisher(t, c, 3*time.Second)
	var asked atomic.Bool
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked.Store(true)
		return nil, nil, true // never answered
	})
	answers := make(chan error, 8)
	for range cap(answers) {
		go func() { answers <- p.Publish(context.Background(), forwarded(1))[0] }()
	}
	kafkatest.Eventually(t, "a call is under way", asked.Load)
	p.Close()
	for range cap(answers) {
		if err := <-answers; err == nil {
			t.Error("counts as acknowledged")
		}
	}
	if err := p.Publish(context.Background(), forwarded(1))[0]; err == nil {
		t.Error("a closed publisher acknowledges")
	}
}

// TestPublish_AsksEveryInSyncReplica: an acknowledgement of the leader alone is lost with the leader.
func TestPublish_AsksEveryInSyncReplica(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, 2*time.Second)
		var asked, wrong atomic.Int32
		stop := c.Watch(kmsg.Produce, func(req kmsg.Request) {
			asked.Add(1)
			if req.(*kmsg.ProduceRequest).Acks != -1 {
				wrong.Add(1)
			}
		})
		defer stop()
		c.Fail(kmsg.Produce, kerr.MessageTooLarge, 1) // each record is then sent by itself too
		if err := errors.Join(p.Publish(context.Background(), forwarded(2))...); err != nil {
			t.Fatal(err)
		}
		if asked.Load() < 3 || wrong.Load() > 0 {
			t.Errorf("%d of %d requests ask for less than all in-sync replicas", wrong.Load(), asked.Load())
		}
	}, kfake.SeedTopics(1, dlq))
}

func TestPublish_NoErrorIsAnAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, err := range []error{context.DeadlineExceeded, context.Canceled, kgo.ErrRecordTimeout, kgo.ErrRecordRetries, kgo.ErrMaxBuffered,
		kgo.ErrClientClosed, kgo.ErrAborting, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.DuplicateSequenceNumber} {
		if got := kafka.Answered(err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, late := range []error{context.DeadlineExceeded, kgo.ErrRecordTimeout, fmt.Errorf("read: %w", os.ErrDeadlineExceeded)} {
		if !errors.Is(kafka.Answered(late), kafka.ErrUnanswered) {
			t.Errorf("%v is not told as unanswered", late)
		}
	}
	if err := kafka.Answered(nil); err != nil {
		t.Error(err)
	}
}

// A call still gets its answer after another call gave up their shared client.
func TestPublish_ReplacedClientFinishesItsCalls(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, dlq, "slow"))
	p := publisher(t, c, 20*time.Second)
	held, goOn := make(chan struct{}), make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { close(held); <-goOn })
		return nil, nil, false
	})
	answer := make(chan error, 1)
	go func() {
		answer <- p.Publish(context.Background(), []*kgo.Record{{Topic: "slow", Value: []byte("v")}})[0]
	}()
	<-held
	hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Publish(hurried, forwarded(1))[0]; !errors.Is(err, kafka.ErrUnanswered) {
		t.Errorf("a call without time: %v", err)
	}
	close(goOn)
	if err := <-answer; err != nil {
		t.Errorf("the other call: %v", err)
	}
}

// A client costs a producer id and connections, so a missing topic does not replace it.
func TestPublish_MissingTopicReplacesNoClient(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		p := publisher(t, c, kafkatest.Timeout)
		var ids atomic.Int64
		c.Watch(kmsg.InitProducerID, func(kmsg.Request) { ids.Add(1) })
		for range 3 {
			if err := p.Publish(t.Context(), []*kgo.Record{{Topic: "missing", Value: []byte("v")}})[0]; !errors.Is(err, kerr.UnknownTopicOrPartition) {
				t.Errorf("a missing topic: %v", err)
			}
			if err := p.Publish(t.Context(), forwarded(1))[0]; err != nil {
				t.Error(err)
			}
		}
		if n := ids.Load(); n != 1 {
			t.Errorf("%d producer ids were asked for", n)
		}
	}, kfake.SeedTopics(1, dlq))
}
