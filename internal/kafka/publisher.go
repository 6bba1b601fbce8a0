package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// PublisherConfig says how long and how large a publish may be.
type PublisherConfig struct {
	// Timeout is the budget of one Publish, second tries included. Default 10 s.
	Timeout time.Duration
	// BatchBytes is the size up to which records go to the broker together, uncompressed. Default 1,000,012 bytes, the
	// brokers' own default of max.message.bytes.
	BatchBytes int32
	// MaxRecordBytes is the largest record that is offered to a broker at all, uncompressed; up to it the broker
	// decides. It must stay below the brokers' socket.request.max.bytes. Default 90 MiB.
	MaxRecordBytes int32
	// MaxBufferedBytes is the most that waits for answers at one time, over all calls. Default 256 MiB.
	MaxBufferedBytes int
}

// ErrUnanswered says that no broker acknowledged a record in time. It may be in the topic all the same.
var ErrUnanswered = errors.New("not acknowledged in time")

// Publisher writes records to topics and tells which of them the brokers have.
//
// A client that let a record run out of time, or failed for a reason that is not the record's or its topic's, is not
// used again: it may wait for an answer that never comes, or repeat the failure, long after the brokers are well. The
// next call gets new clients; the old ones are closed when the calls that still use them have returned.
type Publisher struct {
	pc    PublisherConfig
	fresh func() (*clients, error)

	mu  sync.Mutex
	now *clients
}

// clients are the producers that one or more calls use.
type clients struct {
	many   *kgo.Client   // records together
	single *kgo.Client   // one record per request, of any size
	alone  chan struct{} // one place: keeps the records of single from being put together

	users   int // calls under way; guarded by Publisher.mu
	retired bool
}

func (c *clients) close() {
	c.many.Close()
	c.single.Close()
}

// NewPublisher checks the settings; it dials nothing. reg, when it is not nil, gets the clients' metrics.
func NewPublisher(cfg Config, pc PublisherConfig, logger zerolog.Logger, reg prometheus.Registerer) (*Publisher, error) {
	cfg = cfg.withDefaults()
	set(&pc.Timeout, 10*time.Second)
	set(&pc.BatchBytes, 1000012)
	set(&pc.MaxRecordBytes, 90<<20)
	set(&pc.MaxBufferedBytes, 256<<20)
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("kafka publisher: %w", err)
	}
	// A connection that a broker leaves without an answer must not outlast the call that waits for it.
	cfg.RequestTimeout = min(cfg.RequestTimeout, pc.Timeout)
	many, err := newStage(reg, "publisher")
	if err != nil {
		return nil, fmt.Errorf("kafka publisher: %w", err)
	}
	single, err := newStage(reg, "publisher-single")
	if err != nil {
		return nil, fmt.Errorf("kafka publisher: %w", err)
	}
	logs := [...]*clientLog{cfg.quiet(logger, "publisher"), cfg.quiet(logger, "publisher-single")} // outlive the clients
	p := &Publisher{pc: pc}
	p.fresh = func() (*clients, error) {
		c := &clients{alone: make(chan struct{}, 1)}
		var err error
		if c.many, err = kgo.NewClient(pc.options(cfg, logs[0], many, pc.BatchBytes)...); err != nil {
			return nil, fmt.Errorf("kafka publisher: %w", err)
		}
		if c.single, err = kgo.NewClient(pc.options(cfg, logs[1], single, max(pc.MaxRecordBytes, pc.BatchBytes))...); err != nil {
			c.many.Close()
			return nil, fmt.Errorf("kafka publisher: %w", err)
		}
		return c, nil
	}
	if p.now, err = p.fresh(); err != nil {
		return nil, err
	}
	return p, nil
}

func (pc PublisherConfig) options(cfg Config, logger kgo.Logger, on *stage, batch int32) []kgo.Opt {
	return cfg.options(logger, append(on.play(),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		// A record in flight can be given up. The broker may have it twice then, which its dead-letter id shows; without
		// this a broker that never answers would hold the call for ever.
		kgo.AllowIdempotentProduceCancellation(),
		// There is no RecordDeliveryTimeout: the client counts it from the record's own timestamp, so that what waited in
		// the spool for longer would be refused for ever. The deadline of the call is each record's.
		kgo.ProduceRequestTimeout(max(100*time.Millisecond, min(10*time.Second, pc.Timeout*8/10))),
		kgo.UnknownTopicRetries(3),
		kgo.ProducerBatchMaxBytes(batch),
		kgo.BrokerMaxWriteBytes(max(100<<20, batch+1<<20)),
		kgo.MaxBufferedBytes(max(pc.MaxBufferedBytes, int(batch))),
		kgo.MaxBufferedRecords(1<<20), // bytes are the limit: one array can bring a hundred thousand decisions
		kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()),
		kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(64<<10, true, true, nil)), // by key, as Java clients do
	)...)
}

// Publish sends records and waits for the answers, at most for PublisherConfig.Timeout. It returns one error for each
// record, in order: nil means that every in-sync replica has it. An error that is [kerr.MessageTooLarge] says that
// this record alone is too large; it is never said of a record that was refused in company. An answer that was lost
// is an error. The records are not changed, and free to be used again when Publish returns.
func (p *Publisher) Publish(ctx context.Context, records []*kgo.Record) []error {
	ctx, cancel := context.WithTimeout(ctx, p.pc.Timeout)
	defer cancel()
	c := p.enter()
	errs := produce(ctx, c.many, records)
	for i, err := range errs {
		if errors.Is(err, kerr.MessageTooLarge) {
			errs[i] = c.byItself(ctx, records[i])
		}
	}
	spent := false
	for i, err := range errs {
		if err != nil {
			spent = spent || !ofTheRecord(err)
			errs[i] = fmt.Errorf("publish to %s: %w", records[i].Topic, err)
		}
	}
	p.leave(c, spent)
	return errs
}

// ofTheRecord says that an error tells of a record or of its topic, and leaves the client as good as it was. Of all
// others some stay with the client for good: a producer id that was refused once is never asked for again.
func ofTheRecord(err error) bool {
	for _, known := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp,
		kerr.PolicyViolation, kerr.UnknownTopicOrPartition, kerr.TopicAuthorizationFailed, kerr.NotEnoughReplicas,
		kgo.ErrMaxBuffered, context.Canceled} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func (p *Publisher) enter() *clients {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.users++
	return p.now
}

// leave ends a call; spent says that the clients are not to be used again.
func (p *Publisher) leave(c *clients, spent bool) {
	p.mu.Lock()
	c.users--
	if spent && c == p.now && !c.retired {
		if next, err := p.fresh(); err == nil { // the same settings made the clients that we have
			p.now, c.retired = next, true
		}
	}
	unused := c.retired && c.users == 0
	p.mu.Unlock()
	if unused {
		c.close()
	}
}

// byItself sends one record in a request of its own, so that the answer is about this record.
func (c *clients) byItself(ctx context.Context, record *kgo.Record) error {
	select {
	case c.alone <- struct{}{}:
		defer func() { <-c.alone }()
	case <-ctx.Done():
		return ErrUnanswered
	}
	return produce(ctx, c.single, []*kgo.Record{record})[0]
}

// produce answers when every record was answered or ctx ended, whatever the client still waits for.
func produce(ctx context.Context, client *kgo.Client, records []*kgo.Record) []error {
	type answer struct {
		i   int
		err error
	}
	answers := make(chan answer, len(records)) // late ones find room and are forgotten
	errs := make([]error, len(records))
	own := make([]kgo.Record, len(records)) // the client writes into what it is given, maybe after we returned
	for i, r := range records {
		errs[i] = ErrUnanswered
		own[i] = kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
		// TryProduce: a full buffer is an answer, not a wait.
		client.TryProduce(ctx, &own[i], func(_ *kgo.Record, err error) { answers <- answer{i, err} })
	}
	for range records {
		select {
		case a := <-answers:
			errs[a.i] = answered(a.err)
		case <-ctx.Done():
			// What is there already counts.
			for {
				select {
				case a := <-answers:
					errs[a.i] = answered(a.err)
				default:
					return errs
				}
			}
		}
	}
	return errs
}

func answered(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrRecordTimeout) {
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return err
}

// Close ends the clients. What was not answered is given up; later calls get errors.
func (p *Publisher) Close() {
	p.mu.Lock()
	c := p.now
	c.retired = true
	p.mu.Unlock()
	c.close()
}
