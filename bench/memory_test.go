//go:build integration

package bench

import (
	"context"
	"fmt"
)

const (
	largeRecord  = 900_000 // bytes, just below what a broker takes by default
	largeRecords = 200
)

// memory measures the worker's memory with large records, and with LONG over ten times as many. With ordinary ones the drain
// measures it.
func (b *bench) memory(ctx context.Context) error {
	mebibytes := func(r Run) float64 { return float64(r.Peak) / (1 << 20) }
	if !b.Does("drain") {
		if _, err := b.drainRate(ctx); err != nil {
			return err
		}
		b.judgeMemory(b.runs[drainName])
	}
	large, err := b.filled(ctx, "large-records", partitions, largeRecords, largeRecord)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("Docket, %d records of 900 kB", largeRecords)
	err = b.rounds(min(b.Rounds, 3), func() error {
		_, err := b.measure(ctx, name, func(ctx context.Context) (Run, error) { return b.drained(ctx, load{topic: large}) })
		return err
	})
	if err != nil {
		return err
	}
	b.judge("peak memory with records of 900 kB, MiB", Over(b.runs[name], mebibytes), AtMost(384), "%.0f", fmt.Sprintf("%d records", largeRecords))
	if err := b.remove(ctx, large.name); err != nil || !b.Long {
		return err
	}
	return b.long(ctx)
}

// long drains ten times as much as the others, once.
func (b *bench) long(ctx context.Context) error {
	t, err := b.filled(ctx, "ten-times", partitions, 10*b.N, 0)
	if err != nil {
		return err
	}
	const name = "Docket, ten times as many"
	if _, err := b.measure(ctx, name, func(ctx context.Context) (Run, error) { return b.drained(ctx, load{topic: t}) }); err != nil {
		return err
	}
	b.judge(fmt.Sprintf("peak memory over %d decisions, MiB", t.decisions), Over(b.runs[name], func(r Run) float64 { return float64(r.Peak) / (1 << 20) }), AtMost(128), "%.0f", "once")
	b.judge(fmt.Sprintf("peak memory over %d decisions against %d", t.decisions, b.N), Between(b.runs[name], b.runs[drainName], func(long, short Run) float64 {
		return float64(long.Peak) / float64(short.Peak)
	}), nil, "", "1.00 is flat")
	return b.remove(ctx, t.name)
}
