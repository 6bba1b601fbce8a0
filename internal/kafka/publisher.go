package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// PublisherConfig limits the time and the size of a publish.
type PublisherConfig struct {
	// Timeout limits one Publish, second tries included. Default 10 s.
	Timeout time.Duration
	// BatchBytes limits the uncompressed size of records that go to the broker together. Default 1,000,012 bytes, the
	// brokers' own default of max.message.bytes.
	BatchBytes int32
	// MaxRecordBytes is the largest uncompressed record that is sent to a broker. Below it the broker decides. It
	// must stay below the brokers' socket.request.max.bytes. Default 90 MiB.
	MaxRecordBytes int32
	// MaxBufferedBytes limits the records that wait for answers at one time, over all calls. Further ones wait for room.
	// Default 256 MiB.
	MaxBufferedBytes int
	// Linger is how long a record waits for others of its partition, also from other calls. Default 0.
	Linger time.Duration
}

// ErrUnanswered says that no broker acknowledged a record in time. The record may still be in the topic.
var ErrUnanswered = errors.New("not acknowledged in time")

// Publisher writes records to topics and returns which of them the brokers have.
//
// A client is replaced after a record ran out of time, and after a failure that is not the record's or its topic's.
// Such a client could wait for an answer that never comes, or repeat the failure after the brokers are well. The next
// call gets new clients. The old ones are closed when the calls that use them have returned.
type Publisher struct {
	pc     PublisherConfig
	fresh  func() (*clients, error)
	logger zerolog.Logger

	mu      sync.Mutex
	now     *clients
	refused map[string]*FaultError // by topic, while the brokers refuse this client there
}

// clients are the producers used by one or more calls.
type clients struct {
	many   *kgo.Client   // sends many records together
	single *kgo.Client   // sends one record per request, of any size
	alone  chan struct{} // one place: keeps the records of single apart

	users   int // running calls; guarded by Publisher.mu
	retired bool
}

func (c *clients) close() {
	c.many.Close()
	c.single.Close()
}

// NewPublisher checks the settings. It does not connect. The clients' metrics are registered in reg, unless reg is
// nil.
func NewPublisher(cfg Config, pc PublisherConfig, logger zerolog.Logger, reg prometheus.Registerer) (*Publisher, error) {
	cfg = cfg.withDefaults()
	set(&pc.Timeout, 10*time.Second)
	set(&pc.BatchBytes, 1000012)
	set(&pc.MaxRecordBytes, 90<<20)
	set(&pc.MaxBufferedBytes, 256<<20)
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("kafka publisher: %w", err)
	}
	// A connection on which a broker does not answer must not outlast the call.
	cfg.RequestTimeout = min(cfg.RequestTimeout, pc.Timeout)
	many, err := newStage(reg, "publisher")
	if err != nil {
		return nil, fmt.Errorf("kafka publisher: %w", err)
	}
	single, err := newStage(reg, "publisher-single")
	if err != nil {
		return nil, fmt.Errorf("kafka publisher: %w", err)
	}
	logs := [...]*clientLog{cfg.quiet(logger, "publisher"), cfg.quiet(logger, "publisher-single")} // they outlive the clients
	p := &Publisher{pc: pc, logger: logger.With().Str("instance", cfg.InstanceLabel).Logger(), refused: make(map[string]*FaultError)}
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
		// A record in flight can be given up. The broker may then have it twice, which its dead-letter id shows.
		// Otherwise a broker that never answers would block the call for ever.
		kgo.AllowIdempotentProduceCancellation(),
		// RecordDeliveryTimeout is not set. The client counts it from the record's own timestamp, so a record that
		// waited long in the spool would be refused for ever. The deadline of the call limits each record.
		kgo.ProduceRequestTimeout(max(100*time.Millisecond, min(10*time.Second, pc.Timeout*8/10))),
		kgo.UnknownTopicRetries(3),
		kgo.ProducerBatchMaxBytes(batch),
		kgo.BrokerMaxWriteBytes(max(100<<20, batch+1<<20)),
		kgo.MaxBufferedBytes(max(pc.MaxBufferedBytes, int(batch))),
		kgo.MaxBufferedRecords(1<<20), // the limit is in bytes: one array can bring a hundred thousand decisions
		kgo.WithCompressor(new(deflater)),
		kgo.ProducerLinger(pc.Linger),
		kgo.RecordPartitioner(partitionerOf(cfg.Shares)),
	)...)
}

// Publish sends records and waits for the answers, at most for PublisherConfig.Timeout. It returns one error for each
// record, in order. nil means that every in-sync replica has it. An error that is [kerr.MessageTooLarge] says that
// this record alone is too large. A lost answer is an error. The records are not changed, and may be used again when
// Publish returns. The bytes of a record with an error may still be read then, the bytes of the others not.
func (p *Publisher) Publish(ctx context.Context, records []*kgo.Record) []error {
	_, errs := p.Place(ctx, records)
	return errs
}

// Place is the place of a record in its topic.
type Place struct {
	Partition int32
	Offset    int64
}

// Place is Publish that also returns the place of each record. The place of a record with an error means nothing.
func (p *Publisher) Place(ctx context.Context, records []*kgo.Record) ([]Place, []error) {
	ctx, cancel := context.WithTimeout(ctx, p.pc.Timeout)
	defer cancel()
	c := p.enter()
	placed, errs := produce(ctx, c.many, records)
	large, odd := of(every(len(errs)), errs, tooLarge), of(rand.Perm(len(errs)), errs, ofOne)
	c.smaller(ctx, large, records, placed, errs)
	c.apart(ctx, odd, records, placed, errs)
	hints := p.tell(records, errs)
	spent := false
	for i, err := range errs {
		if err != nil {
			spent = spent || !ofTheRecord(err)
			errs[i] = fmt.Errorf("publish to %s: %w", records[i].Topic, err)
			if hint := hints[records[i].Topic]; hint != "" {
				errs[i] = &refusedError{errs[i], hint}
			}
		}
	}
	p.leave(c, spent)
	return placed, errs
}

// refusedError says why the brokers accept no records for a topic, with advice for an operator.
type refusedError struct {
	error
	hint string
}

func (e *refusedError) Unwrap() error { return e.error }

// Hint returns advice for an operator.
func (e *refusedError) Hint() string { return e.hint }

// tell logs when the brokers begin to refuse records for a topic, and when they accept them again. It returns the
// advice for each refused topic.
func (p *Publisher) tell(records []*kgo.Record, errs []error) (hints map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, err := range errs {
		topic := records[i].Topic
		if err == nil {
			if old := p.refused[topic]; old != nil {
				delete(p.refused, topic)
				logFault(p.logger, old, nil)
			}
			continue
		}
		f := fault("publish to", topic, -1, err)
		switch f.Reason {
		case ReasonTLS, ReasonAuthentication, ReasonAuthorization:
			logFault(p.logger, p.refused[topic], f.missing("WRITE", "topic", topic))
			p.refused[topic] = f
			if hints == nil {
				hints = make(map[string]string)
			}
			hints[topic] = f.Hint
		}
	}
	return hints
}

// ofTheRecord reports whether an error concerns a record or its topic, so that the client stays usable. Some other
// errors stay with the client for good: a refused producer id is never requested again.
func ofTheRecord(err error) bool {
	for _, known := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp,
		kerr.PolicyViolation, kerr.UnknownTopicOrPartition, kerr.TopicAuthorizationFailed, kerr.NotEnoughReplicas,
		context.Canceled} {
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

// leave ends a call. If spent is true, the clients are not used again.
func (p *Publisher) leave(c *clients, spent bool) {
	p.mu.Lock()
	c.users--
	if spent && c == p.now && !c.retired {
		if next, err := p.fresh(); err == nil { // the same settings worked for the present clients
			p.now, c.retired = next, true
		}
	}
	unused := c.retired && c.users == 0
	p.mu.Unlock()
	if unused {
		c.close()
	}
}

// produce returns when every record was answered or ctx ended, even if the client still waits.
func produce(ctx context.Context, client *kgo.Client, records []*kgo.Record) ([]Place, []error) {
	type answer struct {
		i   int
		at  Place
		err error
	}
	answers := make(chan answer, len(records)) // late answers find room and are ignored
	placed, errs := make([]Place, len(records)), make([]error, len(records))
	own := make([]kgo.Record, len(records)) // the client may write into its records after produce returned
	for i, r := range records {
		errs[i] = ErrUnanswered
		if ctx.Err() != nil {
			continue
		}
		own[i] = kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
		// If the buffer is full, Produce waits until there is room, or ctx ends. TryProduce would refuse the record, and its
		// brokers may be well.
		client.Produce(ctx, &own[i], func(r *kgo.Record, err error) {
			answers <- answer{i, Place{r.Partition, r.Offset}, err}
		})
	}
	for range records {
		select {
		case a := <-answers:
			placed[a.i], errs[a.i] = a.at, answered(a.err)
		case <-ctx.Done():
			// Answers that are there already count.
			for {
				select {
				case a := <-answers:
					placed[a.i], errs[a.i] = a.at, answered(a.err)
				default:
					return placed, errs
				}
			}
		}
	}
	return placed, errs
}

// answered marks a timeout as ErrUnanswered. The deadlines of the call, of a record and of a connection can end at
// the same moment, and any of them may be reported.
func answered(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, kgo.ErrRecordTimeout) {
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return err
}

// Close closes the clients. Unanswered records are given up. Later calls return errors.
func (p *Publisher) Close() {
	p.mu.Lock()
	c := p.now
	c.retired = true
	p.mu.Unlock()
	c.close()
}
