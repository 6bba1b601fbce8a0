package conservation

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/envelope"
	"docket/internal/home"
)

// ReadTopic reads a topic from its first record to the end that it has now. settled are offsets by partition below
// which a parked record counts as settled; nil where that has no meaning.
func ReadTopic(ctx context.Context, brokers []string, topic string, h home.Home, settled map[int32]int64) ([]Forwarded, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, fmt.Errorf("read topic %s: %w", topic, err)
	}
	defer cl.Close()
	starts, left, err := bounds(ctx, cl, topic)
	if err != nil {
		return nil, fmt.Errorf("read topic %s: %w", topic, err)
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts})
	var found []Forwarded
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read topic %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if end, open := left[r.Partition]; open && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
			f := ForwardedOf(r, h, topic)
			f.Settled = r.Offset < settled[r.Partition]
			found = append(found, f)
		})
	}
	return found, nil
}

// bounds are where to start in each partition that holds records, and where each of these ends.
func bounds(ctx context.Context, cl *kgo.Client, topic string) (map[int32]kgo.Offset, map[int32]int64, error) {
	adm := kadm.NewClient(cl)
	first, err := adm.ListStartOffsets(ctx, topic)
	if err == nil {
		err = first.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list first offsets: %w", err)
	}
	last, err := adm.ListEndOffsets(ctx, topic)
	if err == nil {
		err = last.Error()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list last offsets: %w", err)
	}
	starts, ends := make(map[int32]kgo.Offset), make(map[int32]int64)
	last.Each(func(o kadm.ListedOffset) {
		if start, ok := first.Lookup(topic, o.Partition); ok && start.Offset < o.Offset {
			starts[o.Partition], ends[o.Partition] = kgo.NewOffset().At(start.Offset), o.Offset
		}
	})
	return starts, ends, nil
}

// ForwardedOf reads what a forwarded record says of itself; where it was found is for the caller to say.
func ForwardedOf(r *kgo.Record, h home.Home, found string) Forwarded {
	f := Forwarded{Home: h, Found: found, Key: r.Key, Value: r.Value}
	f.Index = envelope.NoIndex
	var perr, oerr, ierr error
	for _, h := range r.Headers {
		value := string(h.Value)
		switch h.Key {
		case envelope.OriginalTopic:
			f.Topic = value
		case envelope.OriginalPartition:
			var n int64
			n, perr = strconv.ParseInt(value, 10, 32)
			f.Partition = int32(n)
		case envelope.OriginalOffset:
			f.Offset, oerr = strconv.ParseInt(value, 10, 64)
		case envelope.OriginalIndex:
			f.Index, ierr = strconv.Atoi(value)
		case envelope.FailureCode:
			f.Code = value
		case envelope.DeadLetterID:
			f.ID = value
		}
	}
	f.NoOrigin = f.Topic == "" || perr != nil || oerr != nil || ierr != nil
	return f
}
