package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// IntakeConfig says how dead letters are entered.
type IntakeConfig struct {
	MaxRecordBytes int64 // limit of an inflated value that is decoded
	MaxAttempts    int   // retries that end dead before a letter is FAILED
	Actor          ledger.Actor
	Pause          time.Duration // after the ledger did not take a batch; doubles up to 10 s. 0: 100 ms
	Observer       Observer      // nil: none
	Keys           envelope.Keys // they prove a record's headers
}

// Intake carries dead-letter topics into the ledger. It is safe for concurrent use, with one [Intake.Carry] for each
// partition.
type Intake struct {
	cfg      IntakeConfig
	ledger   ledger.Intake
	news     func([]ledger.Group)
	log      zerolog.Logger
	observer Observer

	mu     sync.Mutex
	faults map[partitionKey]intakeFault
	told   intakeFault // of the last log line; zero: it works
}

// NewIntake makes an intake. news is called with fingerprints that were never seen before, and must not block; nil:
// not called.
func NewIntake(cfg IntakeConfig, l ledger.Intake, news func([]ledger.Group), log zerolog.Logger) *Intake {
	if cfg.Pause <= 0 {
		cfg.Pause = 100 * time.Millisecond
	}
	if news == nil {
		news = func([]ledger.Group) {}
	}
	return &Intake{cfg: cfg, ledger: l, news: news, log: log, observer: observed(cfg.Observer), faults: map[partitionKey]intakeFault{}}
}

// errLeft ends the carrying of a batch that is left uncommitted: the next owner of the partition reads it again.
var errLeft = errors.New("left uncommitted: the partition is being given up")

// Carry enters batch after batch of a partition until it is given up, and returns nil then. After an error the
// partition cannot continue.
func (in *Intake) Carry(ctx context.Context, a Assignment) error {
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.Leaving(), stop)()
	for a.Leaving().Err() == nil {
		b, err := a.Fetch(fetching)
		switch {
		case err != nil && (fetching.Err() != nil || a.Leaving().Err() != nil):
			return nil
		case err != nil:
			return fmt.Errorf("fetch: %w", err)
		}
		if err := in.carry(ctx, a, b); err != nil {
			if errors.Is(err, errLeft) || ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	return nil
}

// carry brings a batch home. Every record is in the ledger, or in a range of records that are only in Kafka, before
// its offset is committed.
func (in *Intake) carry(ctx context.Context, a Assignment, b *home.Batch) error {
	records := b.Records()
	if len(records) == 0 {
		return nil
	}
	letters := make([]ledger.Letter, len(records))
	var d decision.Decoder
	for i, r := range records {
		letters[i] = in.read(&d, r)
	}
	in.tellIDs(records, letters)
	known, err := in.enter(ctx, a, letters)
	if err != nil {
		return err
	}
	for i := range records {
		b.Carries(i, 1)[0].Give(homeOf(known))
	}
	settled, err := b.Settle()
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	if err := a.Commit(ctx, settled); err != nil {
		// The letters are entered. The next commit covers the offset. If the partition is lost, they are read again
		// and found to be known.
		in.log.Warn().Err(err).Str("topic", a.Topic()).Int32("partition", a.Partition()).Int64("offset", settled.Offset()).Msg("offset not committed")
	}
	return nil
}

// tellIDs logs, in one line for a batch, records that carry another id than the computed one. Docket writes no such
// record.
func (in *Intake) tellIDs(records []*kgo.Record, letters []ledger.Letter) {
	n, first := 0, (*kgo.Record)(nil)
	for i, r := range records {
		if letters[i].Cause.Kind == envelope.Foreign {
			continue // its kind says so
		}
		if said := envelope.IDOf(r); said != "" && said != letters[i].ID {
			if n++; first == nil {
				first = r
			}
		}
	}
	if n > 0 {
		in.log.Warn().Int("records", n).Str("topic", first.Topic).Int32("partition", first.Partition).Int64("offset", first.Offset).
			Str("hint", "another program writes to this topic; the ledger computes the ids itself").Msg("dead letters name ids of others")
	}
}

// homeOf returns the home of a batch. The ledger only tells whether all of its letters were there before.
func homeOf(allKnown bool) home.Home {
	if allKnown {
		return home.Duplicate
	}
	return home.Row
}

// enter enters letters, however long that takes, and reports whether all of them were known.
func (in *Intake) enter(ctx context.Context, a Assignment, letters []ledger.Letter) (allKnown bool, err error) {
	p := partitionKey{a.Topic(), a.Partition()}
	var release func()
	defer func() {
		if release != nil {
			in.recovered(p)
			release()
		}
	}()
	for try := 0; ; try++ {
		known, err := in.once(ctx, letters)
		if err == nil {
			return known == len(letters), nil
		}
		if ctx.Err() != nil || a.Leaving().Err() != nil {
			return false, errLeft
		}
		if release == nil {
			release = a.Hold()
		}
		in.failed(p, err)
		leaving, stop := context.WithCancel(ctx)
		cut := context.AfterFunc(a.Leaving(), stop)
		ended := idle(leaving, doubling(in.cfg.Pause, max(in.cfg.Pause, longestPause), try))
		cut()
		stop()
		if ended {
			return false, errLeft
		}
	}
}

// mostHeld limits the decisions in the letters of one transaction, which enters each of them in an index. A letter alone may have
// more.
const mostHeld = 20_000

// once enters letters, in several transactions if they hold many decisions. Those of a batch that is entered again are known.
func (in *Intake) once(ctx context.Context, letters []ledger.Letter) (known int, err error) {
	for len(letters) > 0 {
		n, held := 1, len(letters[0].Held)
		for n < len(letters) && held+len(letters[n].Held) <= mostHeld {
			held += len(letters[n].Held)
			n++
		}
		k, err := in.together(ctx, letters[:n])
		if known += k; err != nil {
			return known, err
		}
		letters = letters[n:]
	}
	return known, nil
}

// together enters letters in one transaction, or one by one if the ledger refuses one of them.
func (in *Intake) together(ctx context.Context, letters []ledger.Letter) (known int, err error) {
	known, err = in.put(ctx, letters)
	if err == nil || errclass.Classify(err).Class != errclass.Data {
		return known, err
	}
	known = 0
	for i := range letters {
		n, err := in.alone(ctx, letters[i])
		if err != nil {
			return known, err
		}
		known += n
	}
	return known, nil
}

// alone enters a letter, as much of it as the ledger takes.
func (in *Intake) alone(ctx context.Context, l ledger.Letter) (known int, err error) {
	err = in.reduced(l, func(l ledger.Letter) (err error) {
		known, err = in.put(ctx, []ledger.Letter{l})
		return err
	})
	return known, err
}

// reduced enters a letter in a shorter form each time the ledger refuses it. The value stays whole, because a retry
// needs it.
func (in *Intake) reduced(l ledger.Letter, put func(ledger.Letter) error) (err error) {
	for _, form := range []func(ledger.Letter) ledger.Letter{asWhole, asPlain, asBare} {
		l = form(l)
		if err = put(l); err == nil || errclass.Classify(err).Class != errclass.Data {
			return err
		}
		in.log.Warn().Str("code", errclass.Classify(err).Code).Str("dead_letter_id", l.ID).Str("topic", l.Found.Topic).
			Int32("partition", l.Found.Partition).Int64("offset", l.Found.Offset).
			Msg("dead letter entered with fewer details")
	}
	return err
}

func (in *Intake) put(ctx context.Context, letters []ledger.Letter) (known int, err error) {
	count, err := in.ledger.Enter(ctx, letters, in.cfg.MaxAttempts, in.cfg.Actor)
	if err != nil {
		return 0, err
	}
	in.tell(count)
	return count.Known, nil
}

// late enters letters that were left before.
func (in *Intake) late(ctx context.Context, book ledger.Growth, p ledger.Portion) (ledger.EnteredCount, ledger.Passed, error) {
	count, done, err := book.EnterSurplus(ctx, p, in.cfg.MaxAttempts, in.cfg.Actor)
	if err == nil {
		count.Left = 0 // they stay in their range
		in.tell(count)
	}
	return count, done, err
}

func (in *Intake) tell(count ledger.EnteredCount) {
	in.observer.Entered(count)
	if len(count.Groups) > 0 {
		in.news(count.Groups)
	}
}
