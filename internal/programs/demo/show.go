package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/audit/conservation"
)

// show is the demo once everything is there.
type show struct {
	cfg      Config
	screen   *screen
	database *server
	places   conservation.Places
	ledger   *conservation.Produced
	began    time.Time
}

// outageAt is how much of everything is produced when Postgres stops.
const outageAt = 0.35

func (s *show) run(ctx context.Context) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	programs, err := launch(ctx, s.cfg, s.places, fail)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, programs.stop()) }()
	if err := programs.ready(ctx); err != nil {
		return because(ctx, err)
	}
	s.screen.say("started    %s; their logs are in %s", programs, s.cfg.Dir)
	progress := s.follow(ctx, programs)
	err = s.act(ctx, progress)
	progress.stop()
	if err != nil {
		return because(ctx, err)
	}
	balance := s.count(ctx)
	if balance != nil && !errors.Is(balance, ErrUnbalanced) && !errors.Is(balance, ErrLedger) {
		return because(ctx, balance) // nothing was counted
	}
	return errors.Join(balance, s.stayUp(ctx), cause(ctx))
}

// because is err, or what made ctx end where that is why.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// cause is why ctx ended, nil where that is because it was told to.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// act produces, has the outage meanwhile, and waits until everything has settled.
func (s *show) act(ctx context.Context, p *progress) error {
	s.screen.say("producing  %s Kafka records in %.0f s, good and bad ones", number(s.cfg.Records), s.cfg.Spread.Seconds())
	due := make(chan struct{})
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.produce(gctx, p, due) })
	group.Go(func() error {
		select {
		case <-due:
			return s.outage(gctx)
		case <-gctx.Done():
			return gctx.Err()
		}
	})
	if err := group.Wait(); err != nil {
		return err
	}
	s.screen.say("produced   %s decisions; waiting until the consumer and the replayer have processed all of them", number(s.ledger.Decisions()))
	return s.settle(ctx)
}

// outage stops Postgres for a while and starts it again.
func (s *show) outage(ctx context.Context) error {
	s.screen.say("OUTAGE     Postgres stops for %.0f s; producing continues", s.cfg.Outage.Seconds())
	if err := s.database.Stop(); err != nil {
		return err
	}
	select {
	case <-time.After(s.cfg.Outage):
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.database.Start(ctx); err != nil {
		return err
	}
	s.screen.say("OUTAGE     Postgres runs again")
	return nil
}

// produce writes everything to Kafka at an even pace, and notes each acknowledged record in the account. It closes due when it is time
// for the outage.
func (s *show) produce(ctx context.Context, p *progress, due chan<- struct{}) error {
	generator, err := conservation.New(conservation.Config{
		Records: s.cfg.Records, Seed: s.cfg.Seed, Samples: s.cfg.Samples, MaxRecordBytes: maxRecordBytes,
		Start: time.Now().Add(-time.Hour),
	})
	if err != nil {
		return fmt.Errorf("make decision logs: %w", err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.DefaultProduceTopic(s.places.Topic))
	if err != nil {
		return fmt.Errorf("make a producer: %w", err)
	}
	defer client.Close()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	pace := newPace(s.cfg.Records, s.cfg.Spread)
	for n := 0; ; n++ {
		record, more := generator.Next()
		if !more {
			break
		}
		if err := pace.wait(ctx, n); err != nil {
			return because(ctx, err)
		}
		if n == int(outageAt*float64(s.cfg.Records)) {
			close(due)
		}
		out := &kgo.Record{Key: record.Key, Value: record.Value, Headers: record.Headers}
		client.Produce(ctx, out, func(r *kgo.Record, err error) {
			if err != nil {
				fail(fmt.Errorf("produce: %w", err))
				return
			}
			s.ledger.Acknowledged(r.Topic, r.Partition, r.Offset, record)
			p.produced.Add(int64(len(record.Decisions)))
		})
	}
	if err := client.Flush(ctx); err != nil {
		return because(ctx, fmt.Errorf("produce: %w", err))
	}
	return cause(ctx)
}

// settleLimit is how long nothing at all may happen before the account is made of what there is.
const settleLimit = 45 * time.Second

// settle waits until both groups have committed everything and the spool is empty, twice in a row.
func (s *show) settle(ctx context.Context) error {
	var before [2]int64
	moved, quiet := time.Now(), 0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for quiet < 2 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		source, parking, err := s.places.Lag(ctx)
		if err != nil {
			return err
		}
		spooled, err := s.spooled()
		if err != nil {
			return err
		}
		quiet++
		if source+parking > 0 || spooled > 0 {
			quiet = 0
		}
		if now := [2]int64{source, parking}; now != before {
			before, moved = now, time.Now()
		}
		if time.Since(moved) > settleLimit {
			s.screen.say("waited     %.0f s without progress; counting now", settleLimit.Seconds())
			return nil
		}
	}
	return nil
}

func (s *show) spooled() (int, error) {
	n := 0
	for _, dir := range s.places.SpoolDirs {
		found, err := conservation.ReadSpool(dir)
		if err != nil {
			return 0, err
		}
		n += len(found)
	}
	return n, nil
}

// count makes the account, waits for the ledger, and shows both.
func (s *show) count(ctx context.Context) error {
	if s.cfg.PlantLoss {
		if err := s.lose(ctx); err != nil {
			return err
		}
	}
	s.screen.say("counting   all rows, all records in the topics, all spool files, all dead letters in the ledger")
	evidence, err := conservation.Gather(ctx, s.places, s.ledger)
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	account := conservation.Reconcile(s.ledger, evidence)
	check, err := s.checkLedger(ctx, letters(evidence))
	if err != nil {
		return err
	}
	balance := account.Err()
	s.report(account, balance, check)
	// The details are in the report.
	var errs []error
	if balance != nil {
		errs = append(errs, ErrUnbalanced)
	}
	if !check.complete() {
		errs = append(errs, ErrLedger)
	}
	return errors.Join(errs...)
}

// lose deletes one row of the table. No program of Docket can notice that.
func (s *show) lose(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.places.DatabaseURL)
	if err != nil {
		return fmt.Errorf("connect to plant a loss: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var lost conservation.Place
	err = conn.QueryRow(ctx, `
		DELETE FROM decision_logs WHERE (decision_id, ts) =
			(SELECT decision_id, ts FROM decision_logs ORDER BY source_partition, source_offset DESC, source_index LIMIT 1)
		RETURNING source_topic, source_partition, source_offset, source_index`).
		Scan(&lost.Topic, &lost.Partition, &lost.Offset, &lost.Index)
	if err != nil {
		return fmt.Errorf("plant a loss: %w", err)
	}
	s.screen.say("planted    a loss: the row of %v is deleted; the account must report it", lost)
	return nil
}
