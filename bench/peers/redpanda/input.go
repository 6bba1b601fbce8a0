package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kgo"
)

func init() {
	spec := service.NewConfigSpec().
		Summary("Records of a topic in batches as they come, whichever partition they are of; offsets are committed up to the first batch without an answer.").
		Fields(service.NewStringListField("seed_brokers"), service.NewStringField("topic"), service.NewStringField("consumer_group"),
			service.NewIntField("max_poll_records").Default(2000), service.NewDurationField("commit_period").Default("5s"))
	err := service.RegisterBatchInput("topic_records", spec, func(conf *service.ParsedConfig, _ *service.Resources) (service.BatchInput, error) {
		in, err := newInput(conf)
		if err != nil {
			return nil, err
		}
		return service.AutoRetryNacksBatched(in), nil
	})
	if err != nil {
		panic(err)
	}
}

// input reads a topic as a member of a group.
type input struct {
	options []kgo.Opt
	most    int
	client  *kgo.Client

	mu       sync.Mutex
	unmarked []*taken // in the order in which they were read
}

// taken is a batch that was read, and whether it has been written.
type taken struct {
	records []*kgo.Record
	written bool
}

func newInput(conf *service.ParsedConfig) (*input, error) {
	brokers, err := conf.FieldStringList("seed_brokers")
	if err != nil {
		return nil, err
	}
	topic, err := conf.FieldString("topic")
	if err != nil {
		return nil, err
	}
	group, err := conf.FieldString("consumer_group")
	if err != nil {
		return nil, err
	}
	most, err := conf.FieldInt("max_poll_records")
	if err != nil {
		return nil, err
	}
	period, err := conf.FieldDuration("commit_period")
	if err != nil {
		return nil, err
	}
	return &input{most: most, options: options(brokers, topic, group, period)}, nil
}

func options(brokers []string, topic, group string, period time.Duration) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(period),
	}
}

// Connect joins the group.
func (in *input) Connect(context.Context) error {
	client, err := kgo.NewClient(in.options...)
	if err != nil {
		return fmt.Errorf("make a consumer: %w", err)
	}
	in.client = client
	return nil
}

// ReadBatch returns what has come, at most max_poll_records.
func (in *input) ReadBatch(ctx context.Context) (service.MessageBatch, service.AckFunc, error) {
	for {
		fetches := in.client.PollRecords(ctx, in.most)
		if fetches.IsClientClosed() {
			return nil, nil, service.ErrNotConnected
		}
		if err := fetches.Err(); err != nil {
			return nil, nil, fmt.Errorf("fetch: %w", err)
		}
		if records := fetches.Records(); len(records) > 0 {
			return messages(records), in.take(records), nil
		}
	}
}

// take remembers a batch until it has been written. The function that it returns is called with the answer of the output.
func (in *input) take(records []*kgo.Record) service.AckFunc {
	batch := &taken{records: records}
	in.mu.Lock()
	in.unmarked = append(in.unmarked, batch)
	in.mu.Unlock()
	return func(_ context.Context, err error) error {
		if err != nil {
			return errors.New("a batch without an answer is tried again before it comes here")
		}
		in.client.MarkCommitRecords(in.written(batch)...)
		return nil
	}
}

// written returns the records that may be committed now that a batch has been written: those of all batches from the first up to
// one that has not.
func (in *input) written(batch *taken) (marked []*kgo.Record) {
	in.mu.Lock()
	defer in.mu.Unlock()
	batch.written = true
	for len(in.unmarked) > 0 && in.unmarked[0].written {
		marked = append(marked, in.unmarked[0].records...)
		in.unmarked = in.unmarked[1:]
	}
	return marked
}

func messages(records []*kgo.Record) service.MessageBatch {
	batch := make(service.MessageBatch, len(records))
	for i, r := range records {
		batch[i] = service.NewMessage(r.Value)
		batch[i].MetaSetMut("kafka_topic", r.Topic)
		batch[i].MetaSetMut("kafka_partition", int64(r.Partition))
		batch[i].MetaSetMut("kafka_offset", r.Offset)
	}
	return batch
}

// Close commits what was marked and leaves the group.
func (in *input) Close(ctx context.Context) error {
	if in.client == nil {
		return nil
	}
	err := in.client.CommitMarkedOffsets(ctx)
	in.client.Close()
	return err
}
