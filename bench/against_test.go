//go:build integration

package bench

import (
	"context"
	"fmt"
)

// edition is a consumer and a database with the schema that its migrations make.
type edition struct{ bin, dsn string }

// as does something with another edition in the place of this one.
func (b *bench) as(e edition, do func() error) error {
	now := edition{b.bin, b.dsn}
	b.bin, b.dsn = e.bin, e.dsn
	defer func() { b.bin, b.dsn = now.bin, now.dsn }()
	return do()
}

// against compares this consumer with that of another commit: each drains the same topics into a schema of its own, in turns.
func (b *bench) against(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	part, err := b.half(ctx)
	if err != nil {
		return err
	}
	refused, err := b.countBad(ctx, part)
	if err != nil {
		return err
	}
	n := int64(t.decisions)
	spoilt := map[string]int64{"row": int64(part.decisions) - refused, "dead_letter": refused}
	loads := []struct {
		name string
		run  func() (Run, error)
	}{
		{"drain", func() (Run, error) { return b.drained(ctx, load{topic: t}) }},
		{"again", func() (Run, error) {
			return b.drained(ctx, load{topic: t, homes: map[string]int64{"duplicate": n}, filled: true, from: n})
		}},
		{"3 % bad", func() (run Run, err error) {
			return run, b.constrained(ctx, "CHECK ("+fmt.Sprintf(scattered, threePercent)+")", func() error {
				run, err = b.drained(ctx, load{topic: part, homes: spoilt})
				return err
			})
		}},
	}
	act := func(who string, e edition) func() error {
		return func() error {
			return b.as(e, func() error {
				for _, l := range loads {
					if _, err := b.measure(ctx, l.name+", "+who, func(context.Context) (Run, error) { return l.run() }); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	const this, other = "this commit", "the other commit"
	now := edition{b.bin, b.dsn}
	for _, e := range []edition{now, b.former} {
		if err := b.as(e, func() error { _, err := loads[0].run(); return err }); err != nil {
			return fmt.Errorf("first drain: %w", err)
		}
	}
	if err := b.rounds(b.Rounds, act(this, now), act(other, b.former)); err != nil {
		return err
	}
	for _, l := range loads {
		b.judge(l.name+" against the other commit", Between(b.runs[l.name+", "+this], b.runs[l.name+", "+other], Rates), AtLeast(0.98), "%.3f", "")
		b.judge("worker CPU of "+l.name+" against the other commit", Between(b.runs[l.name+", "+this], b.runs[l.name+", "+other], CPUs), nil, "%.3f", "less is better")
	}
	return nil
}
