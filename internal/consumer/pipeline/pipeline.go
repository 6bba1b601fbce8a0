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
	"docket/internal/record/home"
)

// ErrDone is what Fetch returns when a partition has nothing more to do, as with `--once`.
var ErrDone = errors.New("nothing more to do for this partition")

// Run carries batch after batch of a partition until it is given up or there is nothing more to do, and returns nil
// then. An error says that the partition cannot go on.
func (p *Pipeline) Run(ctx context.Context, a Assignment) error {
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.Leaving(), stop)()

	t := &turn{turns: p.turns}
	defer t.release()
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
	t.release() // a batch of nothing was never carried
	if err := a.Ready(ctx); err != nil {
		return nil, err
	}
	t.acquire(ctx, ctx)
	return a.Fetch(ctx)
}

// carry brings the front of a fetch home, all of it as a rule. Every step takes what is still without a home and gives
// it one, or leaves it marked with where it has to go. A record that cannot get a home ends the carrying with an error,
// and nothing is committed.
func (p *Pipeline) carry(ctx context.Context, a Assignment, rest *home.Batch, t *turn) (err error) {
	c := p.begin(a, t)
	defer func() { c.finish(err) }()

	b, err := c.decode(ctx, rest)
	if err != nil {
		return err
	}
	ctx = c.follow(ctx, b)
	for more := true; more; { // once, but for a record of very many decisions
		// Row, Duplicate; retry and bisect inside.
		if err := c.store(ctx, c.items); err != nil {
			return err
		}
		// DeadLetter, Parked, Exhausted or Spooled for the rest.
		if err := c.settle(ctx, c.items); err != nil {
			return err
		}
		if more, err = c.further(ctx, b); err != nil {
			return err
		}
	}
	settled, err := b.Settle()
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	c.homed(b, c.items)
	c.release(b)
	c.commit(ctx, settled)
	return nil
}

// Idle says that no batch is in hand, or that those which are wait for somebody else: a hold leaves the brokers to the
// spool.
func (p *Pipeline) Idle() bool { return p.inHand.idle() }

// Wedged returns [ErrWedged] when a batch in hand has shown no sign of progress for longer than limit. A hold, a pause
// between tries and a commit that the brokers do not take yet are no lack of progress: a new process would wait for
// them just the same.
func (p *Pipeline) Wedged(limit time.Duration) error {
	if p.inHand.wedged(p.now, limit) {
		return ErrWedged
	}
	return nil
}

// Away says that the database is known to be away, or to be there again: nothing is parked on the way to finding out.
func (p *Pipeline) Away(away bool) {
	if away {
		p.parked.trip()
		return
	}
	p.parked.reset()
}

// Pipeline carries batches. It is safe for concurrent use.
type Pipeline struct{ process }

// New makes a pipeline. spool is nil where there is none: then a record that Kafka does not take is held.
func New(cfg Config, db Store, publisher Publisher, spool Spool, observer Observer, log zerolog.Logger) *Pipeline {
	p := &Pipeline{process{
		cfg: cfg, db: db, publisher: publisher, spool: spool, observer: observer, log: log,
		now: time.Now, decodeValue: (*decision.Decoder).DecodeSome, parked: breaker{limit: int64(cfg.ParkBatches)},
	}}
	p.larges = make(chan struct{}, 1)
	p.scratches = make(chan *scratch, max(cfg.Turns, 1))
	if cfg.Turns > 0 {
		p.turns = make(chan struct{}, cfg.Turns)
	}
	return p
}
