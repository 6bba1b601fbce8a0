// Package pipeline carries a batch: fetch, decode, store, give homes, commit.
//
// One [Pipeline] serves a program. Run carries the batches of one partition, one after another. It is started once
// for each assigned partition. The code does not ask which program it runs in: a record's history says how often it
// was tried, and all other differences are in [Config].
//
//	            +--------+   +-------+   +--------+   +--------+
//	Fetch ----> | decode |-->| store |-->| settle |-->| Commit |
//	            +--------+   +-------+   +--------+   +--------+
//	             refused?     retry,      publish,     takes a
//	             remember     bisect,     spool        home.Settled
//	             why          hold        or hold      only
//
// The package imports no Postgres, Kafka or HTTP client, no files, no metrics and no environment. They are behind the
// interfaces in ports.go.
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

// ErrDone is returned by Fetch when a partition has no more work, as with `--once`.
var ErrDone = errors.New("nothing more to do for this partition")

// Run carries the batches of a partition until it is given up or has no more work, and then returns nil. After an
// error the partition cannot continue.
func (p *Pipeline) Run(ctx context.Context, a Assignment) error {
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.Leaving(), stop)()

	t := p.turnOf(a.Topic())
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
		for len(b.Records()) > 0 { // more than once if the records inflate to more than a batch
			if err := p.carry(ctx, a, b, t); err != nil {
				if errors.Is(err, errLeft) || ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
	}
}

// fetch takes the next batch after its records are there and its turn has come. Until then the records wait in the
// queue.
func fetch(ctx context.Context, a Assignment, t *turn) (*home.Batch, error) {
	t.release() // a fetch without records was never carried
	if err := a.Ready(ctx); err != nil {
		return nil, err
	}
	t.acquire(ctx, ctx)
	return a.Fetch(ctx)
}

// carry brings the first records of a fetch home, usually all of them. Each step gives homes to decisions that have
// none, or marks their destination. If a decision cannot get a home, carry returns an error and commits nothing.
func (p *Pipeline) carry(ctx context.Context, a Assignment, rest *home.Batch, t *turn) (err error) {
	c := p.begin(a, t)
	defer func() { c.finish(err) }()

	b, err := c.decode(ctx, rest)
	if err != nil {
		return err
	}
	ctx = c.follow(ctx, b)
	for more := true; more; { // usually once; more often for a record of very many decisions
		// Homes: Row, Duplicate. It retries and bisects.
		if err := c.store(ctx, c.items); err != nil {
			return err
		}
		// Homes of the others: DeadLetter, Parked, Exhausted or Spooled.
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

// Idle reports whether no batch is in hand, or all of them wait for something else. During a hold the spool may use
// the brokers.
func (p *Pipeline) Idle() bool { return p.inHand.idle() }

// Wedged returns [ErrWedged] if a batch in hand showed no sign of progress for longer than limit. A hold, a pause
// between tries and a commit that the brokers do not take yet count as progress: a new process would wait just the
// same.
func (p *Pipeline) Wedged(limit time.Duration) error {
	if p.inHand.wedged(p.now, limit) {
		return ErrWedged
	}
	return nil
}

// Away says that the database is known to be away, or to be back. While it is away, a failing batch holds at once and
// is not parked first.
func (p *Pipeline) Away(away bool) {
	if away {
		p.parked.trip()
		return
	}
	p.parked.reset()
}

// Pipeline carries batches. It is safe for concurrent use.
type Pipeline struct{ process }

// New makes a pipeline. Without a spool (nil), a record that Kafka does not take is held.
func New(cfg Config, db Store, publisher Publisher, spool Spool, observer Observer, log zerolog.Logger) *Pipeline {
	p := &Pipeline{process{
		cfg: cfg, db: db, publisher: publisher, spool: spool, observer: observer, log: log,
		now: time.Now, decodeValue: (*decision.Decoder).DecodeSome, parked: breaker{limit: int64(cfg.ParkBatches)},
	}}
	for i := range p.larges {
		p.larges[i] = make(chan struct{}, 1)
	}
	p.scratches = make(chan *scratch, 1)
	if cfg.Turns != nil {
		p.scratches = make(chan *scratch, cfg.Turns.Total())
	}
	return p
}
