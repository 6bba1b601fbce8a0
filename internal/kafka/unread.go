package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Unread is the part of a topic that a group has not read.
type Unread struct {
	Oldest  time.Time // earliest Kafka timestamp among the first records of all partitions; zero: all is read
	Records int64     // offsets between the commits and the ends
	Gone    int64     // uncommitted offsets that the topic no longer holds
}

// Unread reads the first uncommitted record of each partition. A partition without a commit is unread from its start. A
// record of an open transaction counts: its retention runs, too. If ctx has no earlier deadline, it takes 30 s at most.
// The error is a [*FaultError], or that of ctx.
func (r *Reader) Unread(ctx context.Context, topic, group string) (Unread, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	u, first, ends, err := r.behind(ctx, topic, group)
	if err != nil || len(first) == 0 {
		return u, err
	}
	stable, err := r.offsetsOf(topic)(r.admin.ListCommittedOffsets(ctx, topic))
	if err != nil {
		return u, err
	}
	settled, open := make(map[int32]kgo.Offset), make(map[int32]kgo.Offset)
	for p, from := range first {
		if from < stable[p] {
			settled[p] = kgo.NewOffset().At(from)
		}
		if stable[p] < ends[p] { // a transaction is open
			open[p] = kgo.NewOffset().At(max(from, stable[p]))
		}
	}
	u.Oldest, err = r.oldest(ctx, topic, kgo.ReadCommitted(), settled, stable)
	if err != nil || len(open) == 0 {
		return u, err
	}
	waiting, err := r.oldest(ctx, topic, kgo.ReadUncommitted(), open, ends)
	if err == nil && (u.Oldest.IsZero() || !waiting.IsZero() && waiting.Before(u.Oldest)) {
		u.Oldest = waiting
	}
	return u, err
}

// Behind is Unread without Oldest: it counts offsets and reads no record.
func (r *Reader) Behind(ctx context.Context, topic, group string) (Unread, error) {
	u, _, _, err := r.behind(ctx, topic, group)
	return u, err
}

// behind counts the uncommitted offsets. It returns where they begin and end in each partition.
func (r *Reader) behind(ctx context.Context, topic, group string) (u Unread, first, ends map[int32]int64, err error) {
	done, err := r.Committed(ctx, group, topic)
	if err != nil {
		return u, nil, nil, err
	}
	starts, err := r.Starts(ctx, topic)
	if err != nil {
		return u, nil, nil, err
	}
	if ends, err = r.Ends(ctx, topic); err != nil {
		return u, nil, nil, err
	}
	first = make(map[int32]int64)
	for p, end := range ends {
		from, committed := done[p]
		if start := starts[p]; from < start {
			if committed {
				u.Gone += start - from
			}
			from = start
		}
		if from < end {
			u.Records += end - from
			first[p] = from
		}
	}
	return u, first, ends, nil
}

// oldest returns the earliest timestamp of the first records at these offsets; zero: there are none.
func (r *Reader) oldest(ctx context.Context, topic string, level kgo.IsolationLevel, first map[int32]kgo.Offset, ends map[int32]int64) (time.Time, error) {
	if len(first) == 0 {
		return time.Time{}, nil
	}
	client, err := kgo.NewClient(r.cfg.options(r.cfg.quiet(zerolog.Nop(), "reader"),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: first}),
		kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(),
		// A broker sends at least one set of records, however large it is.
		kgo.FetchMaxPartitionBytes(1))...)
	if err != nil {
		return time.Time{}, fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	var oldest time.Time
	for len(first) > 0 {
		fetches := client.PollRecords(ctx, 1000)
		if err := ctx.Err(); err != nil {
			return time.Time{}, fault("read topic", topic, -1, err)
		}
		for _, e := range fetches.Errors() {
			if errors.Is(e.Err, context.DeadlineExceeded) {
				continue
			}
			return time.Time{}, fault("read topic", topic, e.Partition, e.Err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, rec := range p.Records {
				if _, open := first[p.Partition]; !open {
					return
				}
				// A compacted log or one with transactions may hold no record up to its end.
				if !rec.Attrs.IsControl() && (oldest.IsZero() || rec.Timestamp.Before(oldest)) {
					oldest = rec.Timestamp
				}
				if !rec.Attrs.IsControl() || rec.Offset+1 >= ends[p.Partition] {
					delete(first, p.Partition)
					client.PauseFetchPartitions(map[string][]int32{topic: {p.Partition}})
				}
			}
		})
	}
	return oldest, nil
}
