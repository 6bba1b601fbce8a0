//go:build integration

package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topic is one that was filled.
type topic struct {
	name      string
	decisions int
	bytes     int64 // of JSON
}

// filled returns a topic with decisions by seed, made at the first call.
func (b *bench) filled(ctx context.Context, name string, partitions int32, n, pad int) (topic, error) {
	return b.filledWith(ctx, name, partitions, n, NewDecisions(b.Seed, drainedDay).Padded(pad))
}

func (b *bench) filledWith(ctx context.Context, name string, partitions int32, n int, decisions *Decisions) (topic, error) {
	if t, made := b.topics[name]; made {
		return t, nil
	}
	if err := b.create(ctx, name, partitions, nil); err != nil {
		return topic{}, err
	}
	t := topic{name: name, decisions: n}
	from := time.Now()
	if err := b.pour(ctx, b.client, decisions, &t); err != nil {
		return topic{}, err
	}
	b.say("topic %s: %d decisions of %d bytes on average in %v", name, n, t.bytes/int64(n), time.Since(from).Round(100*time.Millisecond))
	b.topics[name] = t
	return t, nil
}

// logs is the topic of most measurements.
func (b *bench) logs(ctx context.Context) (topic, error) {
	return b.filled(ctx, logs, partitions, b.N, 0)
}

// steady is a topic whose subjects get the same answers nearly always.
func (b *bench) steady(ctx context.Context) (topic, error) {
	return b.filledWith(ctx, logs+"-steady", partitions, b.N, NewDecisions(b.Seed, drainedDay).Steady())
}

// half is a topic for what takes long: half as many decisions.
func (b *bench) half(ctx context.Context) (topic, error) {
	return b.filled(ctx, logs+"-half", partitions, b.N/2, 0)
}

// pour produces a topic's decisions and waits until the broker has them.
func (b *bench) pour(ctx context.Context, client *kgo.Client, decisions *Decisions, t *topic) error {
	var failure atomic.Pointer[error]
	for range t.decisions {
		d := decisions.Next()
		t.bytes += int64(len(d.Value))
		client.Produce(ctx, &kgo.Record{Topic: t.name, Key: d.Key, Value: d.Value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failure.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	if err := failure.Load(); err != nil {
		return fmt.Errorf("produce: %w", *err)
	}
	return nil
}

func (b *bench) create(ctx context.Context, name string, partitions int32, settings map[string]*string) error {
	_, err := kadm.NewClient(b.client).CreateTopic(ctx, partitions, 1, settings, name)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return nil
}

// remove deletes a topic that is not needed any more.
func (b *bench) remove(ctx context.Context, name string) error {
	delete(b.topics, name)
	if _, err := kadm.NewClient(b.client).DeleteTopic(ctx, name); err != nil {
		return fmt.Errorf("delete topic %s: %w", name, err)
	}
	return nil
}

// each reads a topic from its beginning until f has had n records.
func (b *bench) each(ctx context.Context, name string, n int, f func(*kgo.Record) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers()...), kgo.ConsumeTopics(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return fmt.Errorf("read topic %s: %w", name, err)
	}
	defer client.Close()
	for n > 0 {
		fetches := client.PollRecords(ctx, 10_000)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("read topic %s: %w", name, err)
		}
		for _, r := range fetches.Records() {
			if n == 0 {
				return nil
			}
			if err := f(r); err != nil {
				return err
			}
			n--
		}
	}
	return nil
}
