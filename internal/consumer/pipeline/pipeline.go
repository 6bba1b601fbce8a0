// Package pipeline is the life of a batch: fetch, decode, store, give homes, commit.
//
// One [Pipeline] serves a program; Run carries the batches of one partition, one after another, and is started once
// for each partition that is ours. Which program it runs in is not asked here: a record's history says how often it
// was tried, and what differs otherwise is in [Config].
//
//	            +--------+   +-------+   +--------+   +--------+
//	Fetch ----> | decode |-->| store |-->| settle |-->| Commit |
//	            +--------+   +-------+   +--------+   +--------+
//	             refused?     retry,      publish,     takes a
//	             remember     bisect,     spool        home.Settled
//	             why          hold        or hold      only
//
// The package stays free of pgx, of Kafka and HTTP clients, of files, of metrics and of the environment: they are
// behind the ports in ports.go.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// ErrDone is what Fetch returns when a partition has nothing more to do, as with `--once`.
var ErrDone = errors.New("nothing more to do for this partition")

// errLeft ends the carrying of a batch that is left uncommitted because the partition is being given up or the
// program stops: whoever has the partition next reads it again.
var errLeft = errors.New("left uncommitted: the partition is being given up")

// Run carries batch after batch of a partition until it is given up or there is nothing more to do, and returns nil
// then. An error says that the partition cannot go on.
func (p *Pipeline) Run(ctx context.Context, a Assignment) error {
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.Leaving(), stop)()

	t := &turn{turns: p.turns}
	defer t.giveBack()
	for {
		if a.Leaving().Err() != nil {
			return nil
		}
		b, err := fetch(fetching, a, t)
		switch {
		case errors.Is(err, ErrDone) || fetching.Err() != nil && err != nil:
			return nil
		case err != nil:
			return fmt.Errorf("fetch: %w", err)
		}
		for len(b.Records()) > 0 { // more than once where it inflates to more than a batch
			if err := p.carry(ctx, a, b, t); err != nil {
				if errors.Is(err, errLeft) || ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
	}
}

// fetch takes the next batch once it is there and its turn has come; until then its records wait in the queue.
func fetch(ctx context.Context, a Assignment, t *turn) (*home.Batch, error) {
	t.giveBack() // a batch of nothing was never carried
	if err := a.Ready(ctx); err != nil {
		return nil, err
	}
	t.take(ctx, ctx)
	return a.Fetch(ctx)
}

// carry brings the front of a fetch home, all of it as a rule. Every step takes what is still without a home and gives
// it one, or leaves it marked with where it has to go; what cannot get a home ends the carrying with an error, and
// nothing is committed.
func (p *Pipeline) carry(ctx context.Context, a Assignment, rest *home.Batch, t *turn) (err error) {
	c := p.pickUp(a, t)
	defer c.putDown()
	defer t.giveBack()

	c.takeTurn(ctx)
	b, items, err := c.decode(ctx, rest)
	if err != nil {
		return err
	}
	defer func() { c.account(items, err) }()
	ctx = c.follow(ctx, b)
	defer func() { c.trace.End(err) }()

	for more := true; more; { // once, but for a record of very many decisions
		if err := c.store(ctx, items); err != nil { // Row, Duplicate; retry and bisect inside
			return err
		}
		if err := c.settle(ctx, items); err != nil { // DeadLetter, Parked, Exhausted or Spooled for the rest
			return err
		}
		if items, more, err = c.further(ctx, b, items); err != nil {
			return err
		}
	}
	settled, err := b.Settle()
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	c.homed(b, items)
	if c.leaveDesk() && !c.soiled { // the commit needs none of it
		b.Release()
	}
	c.giveLargeBack()

	if err := c.commit(ctx, settled); err != nil {
		// The homes stand. The offset is covered by the next commit or, where the partition is lost, the records are
		// read again and found to be duplicates.
		c.on(c.log.Warn()).Err(err).Int64(keyOffset, settled.Offset()).Msg("offset not committed")
	}
	return nil
}

// commit waits for as long as the partition is ours and the brokers do not take it.
func (c *carrier) commit(ctx context.Context, s home.Settled) error {
	defer c.rest()()
	done := c.trace.Committing()
	err := c.a.Commit(ctx, s)
	done(err)
	return err
}

// follow notes where the batch lies and begins its trace.
func (c *carrier) follow(ctx context.Context, b *home.Batch) context.Context {
	if records := b.Records(); len(records) > 0 {
		c.first, c.last = records[0].Offset, records[len(records)-1].Offset
	}
	if c.cfg.Tracer != nil {
		ctx, c.trace = c.cfg.Tracer.Batch(ctx, c.since, b.Records())
	}
	return ctx
}

// Config is what differs between programs and installations.
type Config struct {
	Program string // for logs

	DLQTopic, ParkingTopic, ParkingDLQTopic string

	MaxRecordBytes int64           // of a value after gunzip
	MaxRefused     int             // refused decisions of one record that are forwarded alone, the others share a dead letter; 0 or less: no limit
	BatchBytes     int64           // what the records of a batch may inflate to, a single one may be larger; 0 or less: no limit
	Turns          int             // batches that are decoded and written at a time, over all partitions; 0 or less: no limit
	RetryPauses    []time.Duration // before each further try of a batch that failed for the moment's sake
	ParkBatches    int             // whole batches parked in a row before a hold; 0: park for ever
	ProbeInterval  time.Duration   // between two probes of a hold; a database that is away is looked for more often, see lookout
	PublishTimeout time.Duration   // for all that a batch forwards; 0 or less: each publish has its own
	Backoff        time.Duration   // before the first replay; doubles with each attempt
	MaxBackoff     time.Duration
	MaxAttempts    int           // tries of a parked record
	Consumer       string        // group/instance, for the x-consumer header
	Keys           envelope.Keys // with which forwarded records are signed, and who uploaded a record is proven

	// Tracer follows batches; nil: nobody does.
	Tracer Tracer

	// Replay says that the records come from the parking topic: their history is trusted, and an attempt counts only
	// against a database that answers the probe.
	Replay bool
}

// Pipeline carries batches. It is safe for concurrent use.
type Pipeline struct {
	cfg       Config
	db        Store
	publisher Publisher
	spool     Spool
	observer  Observer
	log       zerolog.Logger
	now       func() time.Time

	decodeValue func(d *decision.Decoder, value []byte, maxBytes int64, from, most int) (decision.Record, *decision.Refusal)

	parked    breaker
	portion   portion
	foresight foresight
	lookout   lookout
	hands     hands
	turns     chan struct{}
	larges    chan struct{} // holds one while a partition has a large record in hand
	desks     chan *desk    // that nobody sits at
}

// New makes a pipeline. spool is nil where there is none: then a record that Kafka does not take is held.
func New(cfg Config, db Store, publisher Publisher, spool Spool, observer Observer, log zerolog.Logger) *Pipeline {
	p := &Pipeline{
		cfg: cfg, db: db, publisher: publisher, spool: spool, observer: observer, log: log,
		now: time.Now, decodeValue: (*decision.Decoder).DecodeSome, parked: breaker{limit: int64(cfg.ParkBatches)},
	}
	p.larges = make(chan struct{}, 1)
	p.desks = make(chan *desk, max(cfg.Turns, 1))
	if cfg.Turns > 0 {
		p.turns = make(chan struct{}, cfg.Turns)
	}
	return p
}
