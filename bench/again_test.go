//go:build integration

package bench

import "context"

// deliverAgain lets a new group read the whole topic into the table that has it all.
func (b *bench) deliverAgain(ctx context.Context, t topic) error {
	n := int64(t.decisions)
	_, err := b.measure(ctx, againName, func(ctx context.Context) (Run, error) {
		return b.drained(ctx, load{topic: t, homes: map[string]int64{"duplicate": n}, filled: true, from: n})
	})
	return err
}

// again compares the second delivery of the whole topic with the first; where drain came before, its rounds did both.
func (b *bench) again(ctx context.Context) error {
	if !b.Does("drain") {
		t, err := b.logs(ctx)
		if err != nil {
			return err
		}
		if err := b.rounds(b.Rounds, func() error { return b.drainOnce(ctx, t) }); err != nil {
			return err
		}
	}
	b.judge("the whole topic a second time, against the first pass", Between(b.runs[againName], b.runs[drainName], Rates), AtLeast(1.5), "", "new group, table full")
	return nil
}
