//go:build integration

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

const (
	latencyLoad = 15 * time.Second
	lookedAt    = 5000 // decisions of a round, about
	lookPause   = 2 * time.Millisecond
)

// latency measures the time of a decision from the broker's append to a row that others see. The rate is a quarter of that
// of the drain.
func (b *bench) latency(ctx context.Context) error {
	most, err := b.drainRate(ctx)
	if err != nil {
		return err
	}
	const name = "Docket, a quarter of its rate"
	err = b.rounds(b.Rounds, func() error {
		_, err := b.measure(ctx, name, func(ctx context.Context) (Run, error) { return b.paced(ctx, most/4) })
		return err
	})
	if err != nil {
		return err
	}
	milliseconds := func(q float64) func(Run) float64 {
		return func(r Run) float64 { return float64(Quantile(r.Delays, q)) / float64(time.Millisecond) }
	}
	note := fmt.Sprintf("at %.0f a second; broker's time of append to the row seen from another connection that looks every 2 ms, so a bit too long rather than too short", most/4)
	b.judge("end to end, p99, ms", Over(b.runs[name], milliseconds(0.99)), AtMost(120), "%.0f", note)
	b.judge("end to end, median, ms", Over(b.runs[name], milliseconds(0.5)), nil, "%.0f", "")
	return nil
}

// drainRate is the median rate of the drains of this run; where there was none, that of one made now.
func (b *bench) drainRate(ctx context.Context) (float64, error) {
	if len(b.runs[drainName]) == 0 {
		t, err := b.logs(ctx)
		if err != nil {
			return 0, err
		}
		if _, err := b.measure(ctx, drainName, func(ctx context.Context) (Run, error) { return b.drained(ctx, load{topic: t}) }); err != nil {
			return 0, err
		}
	}
	return Over(b.runs[drainName], Run.Rate).Value, nil
}

// paced sends decisions at a rate and looks when some of them have their rows.
func (b *bench) paced(ctx context.Context, rate float64) (run Run, err error) {
	b.started++
	t := topic{name: fmt.Sprintf("latency-%d", b.started), decisions: int(rate * latencyLoad.Seconds())}
	appended := "LogAppendTime"
	if err := b.create(ctx, t.name, partitions, map[string]*string{"message.timestamp.type": &appended}); err != nil {
		return run, err
	}
	if err := b.emptied(ctx); err != nil {
		return run, err
	}
	w, err := b.start(t.name, b.group())
	if err != nil {
		return run, err
	}
	defer w.kill()
	if _, err := w.awaitReady(ctx); err != nil {
		return run, err
	}
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	before, err := processCPU(w.pid())
	if err != nil {
		return run, err
	}
	began := time.Now()
	seen, err := b.sendAndLook(ctx, t, rate)
	if err != nil {
		return run, err
	}
	run = Run{Rows: int64(t.decisions), Took: time.Since(began), StartUp: began.Sub(w.started)}
	if err := b.watch(ctx, w, &run); err != nil {
		return run, err
	}
	after, err := processCPU(w.pid())
	if err != nil {
		return run, err
	}
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run.Worker = after - before
	run.since(from, to, run.Worker)
	if run.Peak, err = peakMemory(w.pid()); err != nil {
		return run, err
	}
	metrics, err := w.atRest(ctx)
	if err != nil {
		return run, err
	}
	if err := b.account(ctx, metrics, load{topic: t, homes: map[string]int64{"row": int64(t.decisions)}}); err != nil {
		return run, err
	}
	if run.Delays, err = b.delays(ctx, t, seen); err != nil {
		return run, err
	}
	return run, errors.Join(w.stop(), b.remove(ctx, t.name))
}

// sendAndLook returns when the row of each decision that is looked at was seen.
func (b *bench) sendAndLook(ctx context.Context, t topic, rate float64) (map[string]time.Time, error) {
	every := max(1, t.decisions/lookedAt)
	look := make(chan string, t.decisions/every+1)
	seen := map[string]time.Time{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(look)
		return b.send(ctx, t, rate, func(i int, id string) {
			if i%every == 0 {
				look <- id
			}
		})
	})
	group.Go(func() error { return b.look(ctx, look, seen) })
	return seen, group.Wait()
}

// send produces at an even pace, and tells of each decision before it is sent.
func (b *bench) send(ctx context.Context, t topic, rate float64, tell func(i int, id string)) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers()...), kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return fmt.Errorf("make a producer: %w", err)
	}
	defer client.Close()
	failed := make(chan error, 1)
	decisions := NewDecisions(b.Seed+1, time.Now())
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for sent := 0; sent < t.decisions; {
		for due := min(t.decisions, int(math.Ceil(time.Since(began).Seconds()*rate))); sent < due; sent++ {
			d := decisions.Next()
			tell(sent, d.ID)
			client.Produce(ctx, &kgo.Record{Topic: t.name, Key: d.Key, Value: d.Value}, func(_ *kgo.Record, err error) {
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			})
		}
		select {
		case err := <-failed:
			return fmt.Errorf("produce: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return client.Flush(ctx)
}

// look asks for the rows of what it is told of until all are there.
func (b *bench) look(ctx context.Context, told <-chan string, seen map[string]time.Time) error {
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// The question is planned while the table is all but empty, and would still read the whole of it when it no longer is.
	if _, err := conn.Exec(ctx, "SET enable_seqscan = off"); err != nil {
		return fmt.Errorf("look for rows: %w", err)
	}
	waiting := map[string]bool{}
	deadline := time.Now().Add(latencyLoad + stuck)
	for more := true; more || len(waiting) > 0; {
		more = take(told, waiting, more)
		if time.Now().After(deadline) {
			return fmt.Errorf("%d decisions have no row", len(waiting))
		}
		ids := make([]string, 0, len(waiting))
		for id := range waiting {
			ids = append(ids, id)
		}
		rows, err := conn.Query(ctx, "SELECT decision_id FROM decision_logs WHERE decision_id = ANY($1)", ids)
		if err != nil {
			return fmt.Errorf("look for rows: %w", err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("look for rows: %w", err)
		}
		for now := time.Now(); len(found) > 0; found = found[1:] {
			seen[found[0]] = now
			delete(waiting, found[0])
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookPause):
		}
	}
	return nil
}

// take moves what was told into what is waited for; false once there is no more to come.
func take(told <-chan string, waiting map[string]bool, more bool) bool {
	for more {
		select {
		case id, ok := <-told:
			if !ok {
				return false
			}
			waiting[id] = true
		default:
			return true
		}
	}
	return false
}

// delays are the times from append to row, by the timestamps that the broker gave.
func (b *bench) delays(ctx context.Context, t topic, seen map[string]time.Time) ([]time.Duration, error) {
	var delays []time.Duration
	err := b.each(ctx, t.name, t.decisions, func(r *kgo.Record) error {
		var d struct {
			ID string `json:"decision_id"`
		}
		if err := json.Unmarshal(r.Value, &d); err != nil {
			return fmt.Errorf("decode: %w", err)
		}
		if at, looked := seen[d.ID]; looked {
			delays = append(delays, at.Sub(r.Timestamp))
		}
		return nil
	})
	if err == nil && len(delays) != len(seen) {
		err = fmt.Errorf("%d of %d decisions that were looked at are in the topic", len(delays), len(seen))
	}
	return delays, err
}
