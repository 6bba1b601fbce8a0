package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Reader reads topics and committed offsets from outside. It joins no group and commits nothing. Of a topic in
// Config.Shares it has the partitions of the share alone. It is safe for concurrent use.
type Reader struct {
	cfg      Config
	client   *kgo.Client
	admin    *kadm.Client
	inflater kgo.Decompressor // with the limit of the client
}

// NewReader makes a reader. It does not connect.
func NewReader(cfg Config) (*Reader, error) {
	client, err := oneTime(cfg)
	if err != nil {
		return nil, err
	}
	inflater, ok := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		client.Close()
		return nil, errNoDecompressor
	}
	return &Reader{cfg: cfg.withDefaults(), client: client, admin: kadm.NewClient(client), inflater: inflater}, nil
}

// Close closes its connections.
func (r *Reader) Close() { r.client.Close() }

// Committed returns the offsets that a group has committed in a topic, by partition. A partition without a commit is
// missing. A group that no member has joined yet has no commits. The error is a [*FaultError].
func (r *Reader) Committed(ctx context.Context, group, topic string) (map[int32]int64, error) {
	done, _, err := r.CommittedNoted(ctx, group, topic)
	return done, err
}

// CommittedNoted is Committed, with the text beside each offset.
func (r *Reader) CommittedNoted(ctx context.Context, group, topic string) (done map[int32]int64, notes map[int32]string, err error) {
	var responses kadm.OffsetResponses
	err = oncePresent(ctx, func() (err error) {
		if responses, err = r.admin.FetchOffsetsForTopics(ctx, group, topic); err == nil {
			err = responses.Error()
		}
		return err
	})
	if errors.Is(err, kerr.GroupIDNotFound) {
		return map[int32]int64{}, nil, nil
	}
	if err != nil {
		f := unreachable("fetch the offsets of group "+group, err)
		if f.Code == kerr.GroupAuthorizationFailed.Message {
			return nil, nil, f.missing("DESCRIBE", "group", group)
		}
		return nil, nil, f
	}
	done, notes = make(map[int32]int64), make(map[int32]string)
	share := r.cfg.Shares[topic]
	responses.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic && o.At >= 0 && share.Has(o.Partition) {
			done[o.Partition], notes[o.Partition] = o.At, o.Metadata
		}
	})
	return done, notes, nil
}

// Idle reports whether a group has no members, so that nobody reads for it. The error is a [*FaultError].
func (r *Reader) Idle(ctx context.Context, group string) (bool, error) {
	found, err := r.admin.DescribeGroups(ctx, group)
	if err == nil {
		err = found.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return true, nil
	}
	if err != nil {
		return false, unreachable("describe the group "+group, err)
	}
	g := found[group]
	return g.State == "Empty" || g.State == "Dead", nil
}

// Members returns how many members a group has. One that does not exist has none. The error is a [*FaultError].
func (r *Reader) Members(ctx context.Context, group string) (int, error) {
	found, err := r.admin.DescribeGroups(ctx, group)
	if err == nil {
		err = found.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, unreachable("describe the group "+group, err)
	}
	return len(found[group].Members), nil
}

// Starts returns the first offsets that a topic still holds, by partition. The error is a [*FaultError].
func (r *Reader) Starts(ctx context.Context, topic string) (map[int32]int64, error) {
	return r.offsetsOf(topic)(r.admin.ListStartOffsets(ctx, topic))
}

// Ends returns the offsets of a topic's next records, by partition. The error is a [*FaultError].
func (r *Reader) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	return r.offsetsOf(topic)(r.admin.ListEndOffsets(ctx, topic))
}

// Since returns the first offsets whose records have a Kafka timestamp not before at, by partition. It is the end if
// there is no such record. The error is a [*FaultError].
func (r *Reader) Since(ctx context.Context, topic string, at time.Time) (map[int32]int64, error) {
	return r.offsetsOf(topic)(r.admin.ListOffsetsAfterMilli(ctx, at.UnixMilli(), topic))
}

func (r *Reader) offsetsOf(topic string) func(kadm.ListedOffsets, error) (map[int32]int64, error) {
	return func(all kadm.ListedOffsets, err error) (map[int32]int64, error) {
		if err == nil {
			err = all.Error()
		}
		if err != nil {
			return nil, fault("list the offsets of", topic, -1, err)
		}
		offsets, share := make(map[int32]int64), r.cfg.Shares[topic]
		all.Each(func(o kadm.ListedOffset) {
			if share.Has(o.Partition) {
				offsets[o.Partition] = o.Offset
			}
		})
		return offsets, nil
	}
}

// Identity returns the id that Kafka gave a topic, which a later topic of the same name does not have. It is empty
// before Kafka 2.8. The error is a [*FaultError].
func (r *Reader) Identity(ctx context.Context, topic string) (string, error) {
	topics, err := r.admin.ListTopics(ctx, topic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		return "", fault("look up the id of", topic, -1, err)
	}
	id := topics[topic].ID
	if id == (kadm.TopicID{}) {
		return "", nil
	}
	return id.String(), nil
}

// Limits of one answer to a scan, on the wire. A larger set of records comes alone.
const (
	mostBytes          = 16 << 20
	mostPartitionBytes = 4 << 20
)

// silence is how long a scan waits for records of a partition that should have some.
const silence = 30 * time.Second

// Scan calls each with every committed record of a topic, in the partitions of to. It begins at the offset in from,
// or at the start of the log if that is missing or gone. It ends before the offset in to, or at the log end if that
// is earlier. Records of one partition come in order. It returns the offset where it began, by partition. An error
// that is not each's own is a [*FaultError].
func (r *Reader) Scan(ctx context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error) {
	began, next, err := r.peek(ctx, topic, from, to, each)
	if err != nil {
		return began, err
	}
	rest := make(map[int32]int64)
	for p, end := range to {
		if at, read := next[p]; !read || at < end {
			rest[p] = end
		}
	}
	if len(rest) == 0 {
		return began, nil
	}
	on := maps.Clone(next)
	for p := range rest {
		if _, read := next[p]; !read {
			on[p] = from[p]
		}
	}
	later, err := r.scan(ctx, topic, on, rest, each)
	for p, at := range later {
		if _, read := began[p]; !read {
			began[p] = at
		}
	}
	return began, err
}

// scan is Scan with a client of its own, which asks for more while each is called.
func (r *Reader) scan(ctx context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error) {
	began, left, err := r.bounds(ctx, topic, from, to)
	if err != nil || len(left) == 0 {
		return began, err
	}
	at := make(map[int32]kgo.Offset, len(left))
	for p := range left {
		at[p] = kgo.NewOffset().At(began[p])
	}
	client, err := kgo.NewClient(r.cfg.options(r.cfg.quiet(zerolog.Nop(), "reader"),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: at}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxBytes(mostBytes), kgo.FetchMaxPartitionBytes(mostPartitionBytes))...)
	if err != nil {
		return began, fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	for len(left) > 0 {
		if err := poll(ctx, client, topic, left, each); err != nil {
			return began, err
		}
	}
	return began, nil
}

// poll reads one answer and removes the partitions that were read to their end.
func poll(ctx context.Context, client *kgo.Client, topic string, left map[int32]int64, each func(*kgo.Record) error) error {
	waiting, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	fetches := client.PollRecords(waiting, 5000)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, e := range fetches.Errors() {
		return fault("read topic", topic, e.Partition, e.Err)
	}
	var failed error
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		end, open := left[p.Partition]
		for _, rec := range p.Records {
			if !open || rec.Offset >= end || failed != nil {
				break
			}
			if !rec.Attrs.IsControl() {
				failed = each(rec)
			}
		}
		if n := len(p.Records); n > 0 && p.Records[n-1].Offset+1 >= end {
			delete(left, p.Partition)
			client.PauseFetchPartitions(map[string][]int32{topic: {p.Partition}})
		}
	})
	return failed
}

// bounds returns where to start in each partition and, for those that hold something to read, where to end.
func (r *Reader) bounds(ctx context.Context, topic string, from, to map[int32]int64) (began, left map[int32]int64, err error) {
	starts, err := r.Starts(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	ends, err := r.Ends(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	began, left = make(map[int32]int64), make(map[int32]int64)
	for _, p := range slices.Sorted(maps.Keys(to)) {
		if _, there := ends[p]; !there {
			continue
		}
		began[p] = max(from[p], starts[p])
		if end := min(to[p], ends[p]); began[p] < end {
			left[p] = end
		}
	}
	return began, left, nil
}
