//go:build integration

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

const (
	away       = 5 * time.Second // from the kill to the start of the container
	mostOutage = 3               // rounds: the servers are hurt by each
)

// outage kills Postgres in the middle of a drain and measures how soon rows come again.
func (b *bench) outage(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	const name = "Docket, Postgres killed half-way"
	err = b.rounds(min(b.Rounds, mostOutage), func() error {
		_, err := b.measure(ctx, name, func(ctx context.Context) (Run, error) { return b.interrupted(ctx, t) })
		return err
	})
	if err != nil {
		return err
	}
	note := fmt.Sprintf("SIGKILL when a quarter was done, started again after %v; from the first SELECT that is answered; not measured where the backlog had ended", away)
	b.judge("first row after Postgres is back, s", Over(b.runs[name], func(r Run) float64 { return seconds(r.FirstRow) }), AtMost(1), "", note)
	b.judge("until 90 % of the rate before, s", Over(b.runs[name], func(r Run) float64 { return seconds(r.Speed) }), AtMost(5), "", "begin of the first half second at that rate, from the first row on; not measured where the backlog ends before")
	return nil
}

// seconds are those of what was seen at all.
func seconds(d time.Duration) float64 {
	if d == 0 {
		return math.NaN()
	}
	return d.Seconds()
}

func (b *bench) interrupted(ctx context.Context, t topic) (run Run, err error) {
	if err := b.emptied(ctx); err != nil {
		return run, err
	}
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	w, err := b.start(t.name, b.group())
	if err != nil {
		return run, err
	}
	defer w.kill()
	began, err := w.awaitReady(ctx)
	if err != nil {
		return run, err
	}
	before, err := b.follow(ctx, w, func(s series) bool { return s.home("row") >= int64(t.decisions/4) })
	if err != nil {
		return run, err
	}
	last := before[len(before)-1]
	steady := float64(last.rows) / last.at.Sub(began).Seconds()
	killed, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	var after []progress
	var restarted, back time.Time
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		after, err = b.follow(both, w, func(s series) bool { return s.homes() >= int64(t.decisions) })
		return err
	})
	group.Go(func() (err error) {
		restarted, back, err = b.cut(both)
		return err
	})
	if err := group.Wait(); err != nil {
		return run, err
	}
	run = Run{Rows: int64(t.decisions), Took: after[len(after)-1].at.Sub(began), StartUp: began.Sub(w.started)}
	run.FirstRow, run.Speed = recovery(after, restarted, back, 0.9*steady)
	worker, err := processCPU(w.pid())
	if err != nil {
		return run, err
	}
	to, err := b.meterRestarted(ctx, killed)
	if err != nil {
		return run, err
	}
	run.since(from, to, worker)
	if run.Peak, err = peakMemory(w.pid()); err != nil {
		return run, err
	}
	seen, err := w.atRest(ctx)
	if err != nil {
		return run, err
	}
	err = errors.Join(b.accountOutage(ctx, seen, t), w.stop())
	run.Worker = w.used()
	b.say("  first row after %.2f s, rate back after %.2f s (NaN: the backlog had ended); %d parked", seconds(run.FirstRow), seconds(run.Speed), seen.home("parked"))
	return run, err
}

// meterRestarted is a meter after a restart of Postgres, whose container may count from zero then. The use before the kill
// is added.
func (b *bench) meterRestarted(ctx context.Context, killed meter) (meter, error) {
	to, err := b.meter(ctx)
	if to.postgres < killed.postgres {
		to.postgres += killed.postgres
	}
	return to, err
}

// cut kills Postgres and starts it again a while later; it returns when that was, and when the first SELECT was answered.
func (b *bench) cut(ctx context.Context) (restarted, back time.Time, err error) {
	server := b.postgres.Handle()
	if err := server.End(ctx, "SIGKILL"); err != nil {
		return restarted, back, err
	}
	select {
	case <-ctx.Done():
		return restarted, back, ctx.Err()
	case <-time.After(away):
	}
	restarted = time.Now()
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Start(both) })
	group.Go(func() error {
		for both.Err() == nil {
			attempt, cancel := context.WithTimeout(both, time.Second)
			err := b.answers(attempt)
			cancel()
			if err == nil {
				back = time.Now()
				return nil
			}
			select {
			case <-both.Done():
			case <-time.After(2 * time.Millisecond):
			}
		}
		return both.Err()
	})
	return restarted, back, group.Wait()
}

func (b *bench) answers(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "SELECT 1")
	return err
}

// follow notes the rows every few milliseconds until done.
func (b *bench) follow(ctx context.Context, w *worker, done func(series) bool) (seen []progress, err error) {
	err = w.until(ctx, 5*stuck, 10*time.Millisecond, func() (bool, error) {
		s, err := w.metrics(ctx)
		if err != nil {
			return false, err
		}
		seen = append(seen, progress{time.Now(), s.home("row")})
		return done(s), nil
	})
	return seen, err
}

// accountOutage checks that every decision has a home, and that the table has the rows that it should. Rows of a
// transaction whose answer was lost may be in the table and parked as well.
func (b *bench) accountOutage(ctx context.Context, seen series, t topic) error {
	if n := seen.homes(); n != int64(t.decisions) || seen["docket_unaccounted_records"] != 0 || seen.home("dead_letter") != 0 {
		return fmt.Errorf("the account does not add up: %d of %d decisions have homes, %v are unaccounted for, %d are dead letters",
			n, t.decisions, seen["docket_unaccounted_records"], seen.home("dead_letter"))
	}
	n, err := b.number(ctx, "SELECT count(*) FROM decision_logs")
	if err != nil {
		return err
	}
	stored := seen.home("row") + seen.home("duplicate")
	if n < stored || n > stored+seen.home("parked") {
		return fmt.Errorf("the account does not add up: the table has %d rows, and should have %d, with %d parked", n, stored, seen.home("parked"))
	}
	return nil
}
