//go:build integration

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	scalePartitions = 12
	scaleInstances  = 4
)

// scale compares four instances with one, on the same topic of twelve partitions.
func (b *bench) scale(ctx context.Context) error {
	name := func(n int) string { return fmt.Sprintf("Docket, instances: %d", n) }
	act := func(n int) func() error {
		return func() error {
			_, err := b.measure(ctx, name(n), func(ctx context.Context) (Run, error) { return b.together(ctx, n) })
			return err
		}
	}
	if err := b.rounds(b.Rounds, act(1), act(scaleInstances)); err != nil {
		return err
	}
	four := b.runs[name(scaleInstances)]
	b.judge(fmt.Sprintf("%d instances on %d partitions against 1, total rate", scaleInstances, scalePartitions), Between(four, b.runs[name(1)], Rates), AtLeast(0.98), "",
		"all have their partitions before the first record can be read")
	b.judge("lag of the instance furthest behind against the mean of all, half-way", Over(four, func(r Run) float64 { return r.Spread }), nil, "", "1.00 is even")
	return nil
}

// together lets so many instances drain a topic. It is written in a transaction that is committed when all have their
// partitions, so that none begins before the others.
func (b *bench) together(ctx context.Context, instances int) (run Run, err error) {
	b.started++
	t := topic{name: fmt.Sprintf("scale-%d", b.started), decisions: b.N / 2}
	if err := errors.Join(b.create(ctx, t.name, scalePartitions, nil), b.emptied(ctx)); err != nil {
		return run, err
	}
	client, err := b.uncommitted(ctx, &t)
	if err != nil {
		return run, err
	}
	defer client.Close()
	workers, err := b.startAll(ctx, t, instances)
	defer func() {
		for _, w := range workers {
			w.kill()
		}
	}()
	if err != nil {
		return run, err
	}
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	before, err := usedByAll(workers)
	if err != nil {
		return run, err
	}
	began := time.Now()
	if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return run, fmt.Errorf("commit the topic: %w", err)
	}
	run = Run{Rows: int64(t.decisions), StartUp: began.Sub(workers[0].started)}
	seen, err := b.watchAll(ctx, workers, &run)
	if err != nil {
		return run, err
	}
	run.Took = time.Since(began)
	after, err := usedByAll(workers)
	if err != nil {
		return run, err
	}
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run.Worker = after - before
	run.since(from, to, run.Worker)
	for _, w := range workers {
		peak, err := peakMemory(w.pid())
		if err != nil {
			return run, err
		}
		run.Peak = max(run.Peak, peak)
	}
	if err := b.account(ctx, seen, load{topic: t, homes: map[string]int64{"row": int64(t.decisions)}}); err != nil {
		return run, err
	}
	for _, w := range workers {
		err = errors.Join(err, w.stop())
	}
	return run, errors.Join(err, b.remove(ctx, t.name))
}

// uncommitted fills a topic and leaves the transaction open.
func (b *bench) uncommitted(ctx context.Context, t *topic) (*kgo.Client, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka.Brokers()...), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.MaxBufferedRecords(20_000), kgo.ProducerLinger(20*time.Millisecond), kgo.TransactionalID(t.name), kgo.TransactionTimeout(10*time.Minute))
	if err != nil {
		return nil, fmt.Errorf("make a producer: %w", err)
	}
	if err := client.BeginTransaction(); err != nil {
		client.Close()
		return nil, fmt.Errorf("begin a transaction: %w", err)
	}
	if err := b.pour(ctx, client, NewDecisions(b.Seed+2, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)), t); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// startAll starts instances of one group and waits until each has its share of the partitions.
func (b *bench) startAll(ctx context.Context, t topic, instances int) ([]*worker, error) {
	var workers []*worker
	group := b.group()
	for range instances {
		w, err := b.start(t.name, group)
		if err != nil {
			return workers, err
		}
		workers = append(workers, w)
	}
	for _, w := range workers {
		err := w.until(ctx, stuck, 20*time.Millisecond, func() (bool, error) { return w.assigned(ctx) == scalePartitions/instances, nil })
		if err != nil {
			return workers, fmt.Errorf("wait for the partitions: %w", err)
		}
	}
	return workers, nil
}

// assigned is how many partitions a worker says it has; -1 where it does not say.
func (w *worker) assigned(ctx context.Context) int {
	resp, err := w.get(ctx, "/readyz")
	if err != nil {
		return -1
	}
	defer func() { _ = resp.Body.Close() }() // only read
	var said struct{ Assigned int }
	if json.NewDecoder(resp.Body).Decode(&said) != nil {
		return -1
	}
	return said.Assigned
}

func usedByAll(workers []*worker) (sum time.Duration, err error) {
	for _, w := range workers {
		used, err := processCPU(w.pid())
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// watchAll waits until the workers have brought everything home between them, and returns their metrics added up.
func (b *bench) watchAll(ctx context.Context, workers []*worker, run *Run) (series, error) {
	want, began := run.Rows, time.Now()
	deadline := began.Add(5 * stuck)
	for {
		sum, lags, err := addedUp(ctx, workers)
		if err != nil {
			return nil, err
		}
		n := sum.homes()
		if run.Spread == 0 && n >= want/2 {
			run.Spread = spread(lags)
		}
		if n >= want && sum["docket_unaccounted_records"] == 0 {
			return sum, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d of %d decisions have their homes, and time is up", n, want)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(NextLook(n, want, time.Since(began))):
		}
	}
}

func addedUp(ctx context.Context, workers []*worker) (sum series, lags []float64, err error) {
	sum = series{}
	for _, w := range workers {
		seen, err := w.metrics(ctx)
		if err != nil {
			return nil, nil, err
		}
		lag := 0.0
		for name, value := range seen {
			sum[name] += value
			if strings.HasPrefix(name, "docket_consumer_lag{") {
				lag += value
			}
		}
		lags = append(lags, lag)
	}
	return sum, lags, nil
}

// spread is the largest against the mean.
func spread(lags []float64) float64 {
	largest, sum := 0.0, 0.0
	for _, lag := range lags {
		largest, sum = math.Max(largest, lag), sum+lag
	}
	if sum == 0 {
		return math.NaN()
	}
	return largest / (sum / float64(len(lags)))
}
