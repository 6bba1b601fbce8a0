//go:build integration

package bench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// load is what one worker has to do: a topic to its end, in a new group.
type load struct {
	topic    topic
	homes    map[string]int64 // the expected homes; nil: a row of each
	settings []string         // of the worker that are not its defaults
	filled   bool             // leave in the table what is there
	from     int64            // rows that are there before
	replay   bool             // by the replayer, from a parking topic
	group    string           // of its own; empty: one that no group had before
	probe    probe            // looks at the worker meanwhile; nil: nothing does
}

// probe looks at a worker from its first fetch to its last row.
type probe interface {
	start(w *worker) error
	end(ctx context.Context, w *worker) error
}

// drained lets a worker carry a topic home, and accounts for every decision.
func (b *bench) drained(ctx context.Context, l load) (run Run, err error) {
	if !l.filled {
		if err := b.emptied(ctx); err != nil {
			return run, err
		}
	} else if err := b.sql(ctx, "CHECKPOINT"); err != nil {
		return run, err
	}
	if l.homes == nil {
		l.homes = map[string]int64{"row": int64(l.topic.decisions)}
	}
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	w, err := b.startFor(l)
	if err != nil {
		return run, err
	}
	defer w.kill()
	began, err := w.awaitReady(ctx)
	if err != nil {
		return run, err
	}
	run = Run{Rows: int64(l.topic.decisions), StartUp: began.Sub(w.started)}
	if l.probe != nil {
		if err := l.probe.start(w); err != nil {
			return run, err
		}
	}
	if err := b.watch(ctx, w, &run); err != nil {
		return run, err
	}
	run.Took = time.Since(began) // the rest is the account's time
	if l.probe != nil {
		if err := l.probe.end(ctx, w); err != nil {
			return run, err
		}
	}
	seen, err := w.atRest(ctx)
	if err != nil {
		return run, err
	}
	worker, err := processCPU(w.pid())
	if err != nil {
		return run, err
	}
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run.since(from, to, worker)
	run.Batches, run.Probes = int64(seen["docket_batch_duration_seconds_count"]), int64(seen["docket_bisect_probes_total"])
	run.Retries = int64(seen["docket_store_retries_total"])
	run.InBatches = time.Duration(seen["docket_batch_duration_seconds_sum"] * float64(time.Second))
	run.InCalls = time.Duration(seen[`docket_limit_call_seconds_sum{result="ok"}`] * float64(time.Second))
	if run.Peak, err = peakMemory(w.pid()); err != nil {
		return run, err
	}
	if err := w.stop(); err != nil {
		return run, err
	}
	run.Worker = w.used()
	return run, b.account(ctx, seen, l)
}

// startFor starts the program that a load is for.
func (b *bench) startFor(l load) (*worker, error) {
	if l.group == "" {
		l.group = b.group()
	}
	if l.replay {
		return b.launch(b.replayer, append([]string{"DOCKET_KAFKA_PARKING_TOPIC=" + l.topic.name, "DOCKET_PARKING_GROUP=" + l.group}, l.settings...)...)
	}
	return b.start(l.topic.name, l.group, l.settings...)
}

// watch waits until so many decisions have their homes. It asks seldom while there is much to do, as asking costs the worker.
func (b *bench) watch(ctx context.Context, w *worker, run *Run) error {
	want := run.Rows
	var last int64
	began := time.Now()
	changed := began
	for {
		seen, err := w.metrics(ctx)
		if err != nil {
			return err
		}
		b.sessions = max(b.sessions, int(seen["docket_postgres_pool_acquired_connections"]))
		n := seen.homes()
		if run.HalfPeak == 0 && n >= want/2 {
			if run.HalfPeak, err = peakMemory(w.pid()); err != nil {
				return err
			}
		}
		switch {
		case n >= want:
			return nil
		case n > last:
			last, changed = n, time.Now()
		case time.Since(changed) > stuck:
			return fmt.Errorf("%d of %d decisions have their homes, and no more come, see %s", n, want, w.log)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ended:
			return fmt.Errorf("the worker has ended, see %s", w.log)
		case <-time.After(NextLook(n, want, time.Since(began))):
		}
	}
}

// atRest are the metrics of a worker that has nothing in hand: all is accounted for then, or something is wrong.
func (w *worker) atRest(ctx context.Context) (seen series, err error) {
	deadline := time.Now().Add(10 * time.Second)
	for {
		if seen, err = w.metrics(ctx); err != nil || seen["docket_unaccounted_records"] == 0 || time.Now().After(deadline) {
			return seen, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// account sees that every decision has the home that it has to have. Where writes were tried again, as the answer to one may
// have been lost, a duplicate is as good as the row that it met.
func (b *bench) account(ctx context.Context, seen series, l load) error {
	want := maps.Clone(l.homes)
	if met := seen.home("duplicate") - want["duplicate"]; met > 0 && seen["docket_store_retries_total"] > 0 {
		want["duplicate"] += met
		want["row"] -= met
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		home, ok := strings.CutPrefix(strings.TrimSuffix(name, `"}`), homed)
		if ok && seen.home(home) != want[home] {
			return fmt.Errorf("the account does not add up: %d decisions have the home %s, and %d should", seen.home(home), home, want[home])
		}
	}
	if n := seen["docket_unaccounted_records"]; n != 0 {
		return fmt.Errorf("the account does not add up: %v decisions are unaccounted for", n)
	}
	return b.counted(ctx, l.from+l.homes["row"])
}

// counted sees that the table has so many rows.
func (b *bench) counted(ctx context.Context, want int64) error {
	n, err := b.number(ctx, "SELECT count(*) FROM decision_logs")
	if err != nil {
		return err
	}
	if n != want {
		return fmt.Errorf("the account does not add up: the table has %d rows, and should have %d", n, want)
	}
	return nil
}

// drain compares Docket with COPY and with a worker that inserts row by row.
func (b *bench) drain(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	b.sessions = 0
	if _, err := b.drained(ctx, load{topic: t}); err != nil { // warms up, and makes the rows that COPY gets ready-made
		return fmt.Errorf("first drain: %w", err)
	}
	if err := b.makeReady(ctx, t); err != nil {
		return err
	}
	counts := sessionCounts(b.sessions)
	b.say("the worker was seen to use %d sessions; COPY runs with %v", b.sessions, counts)
	acts := []func() error{
		func() error { return b.drainOnce(ctx, t) },
		func() error { return b.rowByRow(ctx, t) },
	}
	same := sameSessions(counts, b.sessions)
	for _, ready := range readyMades {
		for _, n := range counts {
			if ready.printed && n != same {
				continue
			}
			acts = append(acts, func() error {
				_, err := b.measure(ctx, copyName(ready, n), func(ctx context.Context) (Run, error) { return b.copied(ctx, ready, n, t.decisions) })
				return err
			})
		}
	}
	if err := b.rounds(b.Rounds, acts...); err != nil {
		return err
	}
	b.judgeDrain(counts)
	return nil
}

const (
	drainName = "Docket, empty table"
	againName = "Docket, all there already"
	plainName = "insert by record, autocommit"
)

// drainOnce drains into the empty table and, where that is wanted, the whole topic a second time.
func (b *bench) drainOnce(ctx context.Context, t topic) error {
	if _, err := b.measure(ctx, drainName, func(ctx context.Context) (Run, error) { return b.drainedAndWeighed(ctx, t) }); err != nil {
		return err
	}
	if !b.Does("again") {
		return nil
	}
	return b.deliverAgain(ctx, t)
}

// drainedAndWeighed drains into the empty table and sees what its rows take on disk.
func (b *bench) drainedAndWeighed(ctx context.Context, t topic) (Run, error) {
	run, err := b.drained(ctx, load{topic: t})
	if err != nil {
		return run, err
	}
	run.OnDisk, err = b.number(ctx, "SELECT sum(pg_total_relation_size(relid))::int8 FROM pg_partition_tree('decision_logs') WHERE isleaf")
	return run, err
}

func (b *bench) judgeDrain(counts []int) {
	drains, same := b.runs[drainName], sameSessions(counts, b.sessions)
	for _, ready := range readyMades {
		var goal *Goal // said where the payloads are as Postgres prints them
		switch ready {
		case readyMade{format: "text"}:
			goal = AtLeast(1.05)
		case readyMade{format: "binary"}:
			goal = AtLeast(0.9)
		}
		b.judge(fmt.Sprintf("drain against psql COPY %s, %d sessions", ready, same), Between(drains, b.runs[copyName(ready, same)], Rates), nil, "", fmt.Sprintf("the worker was seen to use %d", b.sessions))
		if !ready.printed {
			b.judge(fmt.Sprintf("drain against psql COPY %s, the best number of sessions of each round", ready), Between(drains, b.fastest(ready, counts), Rates), goal, "", fmt.Sprint("of ", counts))
		}
	}
	b.judge("drain against one insert a record", Between(drains, b.runs[plainName], Rates), nil, "%.1f", fmt.Sprintf("%d records", plainRecords(b.N)))
	b.judge("worker CPU, s for a million decisions", Over(drains, Run.WorkerCPU), AtMost(2), "", "start and end of the process included")
	b.judge("CPU of worker, Postgres and Kafka, s for a million decisions", Over(drains, Run.AllCPU), AtMost(13.5), "", "by the kernel's books of the three")
	b.judge("bytes on disk a decision, with its indexes", Over(drains, Run.BytesOnDisk), AtMost(1000), "%.0f", "all partitions, after the drain")
	b.judgeMemory(drains)
}

// judgeMemory is about the worker of a drain.
func (b *bench) judgeMemory(drains []Run) {
	b.judge("peak memory of the worker, MiB", Over(drains, func(r Run) float64 { return float64(r.Peak) / (1 << 20) }), AtMost(128), "%.0f", "VmHWM")
	b.judge("peak memory at the end against the peak at the half", Over(drains, func(r Run) float64 { return float64(r.Peak) / float64(r.HalfPeak) }), nil, "",
		fmt.Sprintf("same process, %d and %d decisions", b.N/2, b.N))
}

// fastest are the runs of COPY that were fastest in each round, whatever the number of sessions.
func (b *bench) fastest(ready readyMade, counts []int) []Run {
	var best []Run
	for i := range b.Rounds {
		fastest, rate := Run{}, math.Inf(-1)
		for _, n := range counts {
			if runs := b.runs[copyName(ready, n)]; i < len(runs) && runs[i].Rate() > rate {
				fastest, rate = runs[i], runs[i].Rate()
			}
		}
		best = append(best, fastest)
	}
	return best
}
