//go:build integration

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/record/envelope"
	"docket/sample"
)

// serialHeader numbers what is produced, so that a record whose acknowledgement was lost can be found in the topic.
const serialHeader = "chaos-serial"

// load produces records at a steady rate past the proxies, idempotently and with every in-sync replica's
// acknowledgement, and writes down where each of them is.
type load struct {
	campaign  *campaign
	generator *conservation.Generator
	client    *kgo.Client
	produced  atomic.Int64

	mu      sync.Mutex
	pending map[int64]conservation.Record // sent, and the broker's answer is not known
	found   map[int64]conservation.Place  // by serial
	back    map[conservation.Place]string // records that the desks put back, with the mark of the retry

	putBacks atomic.Int64
}

func newLoad(c *campaign) (*load, error) {
	generator, err := conservation.New(conservation.Config{
		Records: max(conservation.MinRecords, int(c.length.Seconds()*float64(c.rate))), Seed: c.seed,
		Samples: sample.DecisionLogs(), Start: time.Now().Add(-time.Hour), MaxRecordBytes: maxRecordBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("make decision logs: %w", err)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(c.cluster.Direct()...), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.RequestTimeoutOverhead(5*time.Second), kgo.ProduceRequestTimeout(5*time.Second),
		kgo.MetadataMinAge(250*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 250 * time.Millisecond }),
		kgo.MaxBufferedRecords(5000),
	)
	if err != nil {
		return nil, fmt.Errorf("make the producer: %w", err)
	}
	return &load{campaign: c, generator: generator, client: client, pending: map[int64]conservation.Record{}, found: map[int64]conservation.Place{}, back: map[conservation.Place]string{}}, nil
}

// start produces until the context ends or all is made; the channel is closed then.
func (l *load) start(ctx context.Context) chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		began := time.Now()
		for n := int64(0); ; n++ {
			record, more := l.generator.Next()
			if !more || !wait(ctx, time.Until(began.Add(time.Duration(n)*time.Second/time.Duration(l.campaign.rate)))) {
				return
			}
			l.produce(n, record)
		}
	}()
	return done
}

func (l *load) produce(n int64, record conservation.Record) {
	l.mu.Lock()
	l.pending[n] = record
	l.mu.Unlock()
	headers := append(record.Headers[:len(record.Headers):len(record.Headers)], kgo.RecordHeader{Key: serialHeader, Value: strconv.AppendInt(nil, n, 10)})
	// Not bound to the load's end: a produce that began runs to its end.
	l.client.Produce(context.Background(), &kgo.Record{Topic: l.campaign.topicOf(record.Key), Key: record.Key, Value: record.Value, Headers: headers}, func(r *kgo.Record, err error) {
		l.produced.Add(1)
		if err != nil {
			l.campaign.note("the producer's record %d is unknown: %v", n, err)
			return // the topic will tell
		}
		l.placed(n, r.Topic, r.Partition, r.Offset)
	})
}

// placed writes down where a record is.
func (l *load) placed(n int64, topic string, partition int32, offset int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	record, open := l.pending[n]
	if !open || offset < 0 {
		return false
	}
	if _, taken := l.campaign.ledger.At(topic, partition, offset); taken {
		return false
	}
	l.campaign.ledger.Acknowledged(topic, partition, offset, record)
	l.found[n] = conservation.Place{Topic: topic, Partition: partition, Offset: offset}
	delete(l.pending, n)
	return true
}

const flushLimit = 2 * time.Minute

// finish waits for the last acknowledgements and reads the topics of all lanes: their records count as produced, and
// acknowledged ones must be there.
func (l *load) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	if err := l.client.Flush(ctx); err != nil {
		return fmt.Errorf("the brokers do not take the last records: %w", err)
	}
	seen, err := l.readBack(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.pending); n > 0 {
		l.campaign.say("%d records never reached their topic and do not count", n)
	}
	if records := l.campaign.ledger.Records() - len(l.back); seen != records {
		return fmt.Errorf("the source has %d records, %d were acknowledged: the brokers themselves lost some", seen, records)
	}
	return nil
}

// readBack reads the topics of all lanes and gives the number of their records.
func (l *load) readBack(ctx context.Context) (int, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(l.campaign.cluster.Direct()...))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, l.campaign.topics()...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("list offsets of the source: %w", err)
	}
	left, starts := verify.Offsets{}, map[string]map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset == 0 {
			return
		}
		left[verify.Partition{Topic: o.Topic, Number: o.Partition}] = o.Offset
		if starts[o.Topic] == nil {
			starts[o.Topic] = map[int32]kgo.Offset{}
		}
		starts[o.Topic][o.Partition] = kgo.NewOffset().AtStart()
	})
	cl.AddConsumePartitions(starts)
	var back []*kgo.Record
	seen := 0
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return 0, errors.New("the source cannot be read back in time")
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if isPutBack(r) {
				back = append(back, r)
			} else {
				seen++
				l.recognise(r)
			}
			if in := (verify.Partition{Topic: r.Topic, Number: r.Partition}); r.Offset+1 >= left[in] {
				delete(left, in)
			}
		})
	}
	for _, r := range l.adopt(back) {
		l.campaign.broken("the source", "a record at %s/%d/%d was put back that nobody produced", r.Topic, r.Partition, r.Offset)
	}
	return seen, nil
}

// isPutBack says whether a desk put a record back.
func isPutBack(r *kgo.Record) bool { return headerOf(r, envelope.RetryOf) != "" }

func headerOf(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// adopt writes down what was put back: the same key and bytes as what was produced, or as one decision of that. It deserves what
// that deserves. It gives back those of which the first record is not known.
func (l *load) adopt(back []*kgo.Record) (unknown []*kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range back {
		at := conservation.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
		if l.back[at] != "" {
			continue
		}
		d := l.first(r)
		if d == nil {
			unknown = append(unknown, r)
			continue
		}
		l.campaign.ledger.Acknowledged(r.Topic, r.Partition, r.Offset, conservation.Record{
			Key: r.Key, Value: r.Value, Headers: r.Headers, Decisions: []conservation.Decision{*d}, Planted: "put back",
		})
		l.back[at] = headerOf(r, envelope.RetryOf)
		l.putBacks.Add(1)
	}
	return unknown
}

// first is the decision that was put back, as it was produced in this lane; nil: none was, as far as is known.
func (l *load) first(r *kgo.Record) *conservation.Decision {
	n, err := strconv.ParseInt(headerOf(r, serialHeader), 10, 64)
	at, ok := l.found[n]
	if err != nil || !ok || at.Topic != r.Topic {
		return nil
	}
	record, _ := l.campaign.ledger.At(at.Topic, at.Partition, at.Offset)
	if !bytes.Equal(record.Key, r.Key) {
		return nil
	}
	for i := range record.Decisions {
		if whole := len(record.Decisions) == 1; whole && same(record.Value, r.Value) || !whole && same(record.Decisions[i].Body, r.Value) {
			return &record.Decisions[i]
		}
	}
	return nil
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// marks are the places of what was put back, by the mark of the retry.
func (l *load) marks() map[string][]conservation.Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	marks := map[string][]conservation.Place{}
	for at, mark := range l.back {
		marks[mark] = append(marks[mark], at)
	}
	return marks
}

// recognise writes a record of the topic into the ledger where its acknowledgement did not come.
func (l *load) recognise(r *kgo.Record) {
	if _, known := l.campaign.ledger.At(r.Topic, r.Partition, r.Offset); known {
		return
	}
	for _, h := range r.Headers {
		n, err := strconv.ParseInt(string(h.Value), 10, 64)
		if h.Key != serialHeader || err != nil {
			continue
		}
		if l.placed(n, r.Topic, r.Partition, r.Offset) || l.again(n, r) {
			return
		}
	}
	l.campaign.broken("the source", "a record at %s/%d/%d that nobody produced", r.Topic, r.Partition, r.Offset)
}

// again writes down a record that the brokers have twice, which is the producer's doing and a duplicate for the programs.
func (l *load) again(n int64, r *kgo.Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, ok := l.found[n]
	if !ok {
		return false
	}
	record, ok := l.campaign.ledger.At(first.Topic, first.Partition, first.Offset)
	if ok {
		record.Reached = time.Time{} // it came again now
		l.campaign.say("the source has the record of %v again at %s/%d/%d", first, r.Topic, r.Partition, r.Offset)
		l.campaign.ledger.Acknowledged(r.Topic, r.Partition, r.Offset, record)
	}
	return ok
}

func (l *load) close() { l.client.Close() }
