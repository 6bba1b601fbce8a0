//go:build integration

package chaos

import (
	"context"
	"errors"
	"time"

	"docket/internal/testkit/pgtest"
)

type attributes = map[string]any

// toxics are the faults of a wire that are the same for a broker and for Postgres.
var toxics = []struct {
	name, direction, toxic string
	attributes             attributes
}{
	{"black hole, both ways", "both", "timeout", attributes{"timeout": 0}},
	{"black hole upstream", "upstream", "timeout", attributes{"timeout": 0}},
	{"black hole downstream", "downstream", "timeout", attributes{"timeout": 0}},
	{"latency", "both", "latency", attributes{"latency": 300, "jitter": 200}},
	{"slow", "both", "bandwidth", attributes{"rate": 40}}, // KB/s
	{"connections reset", "downstream", "reset_peer", attributes{"timeout": 200}},
	{"cut after some bytes", "both", "limit_data", attributes{"bytes": 20011}},
}

func (c *campaign) wireFaults() map[string]inject {
	all := map[string]inject{
		"all brokers: black hole": func(context.Context, Fault) (func(context.Context) error, error) {
			heal := func(ctx context.Context) error { return healWires(ctx, c.wires.brokers...) }
			for _, w := range c.wires.brokers {
				if err := w.toxic("both", "timeout", attributes{"timeout": 0}); err != nil {
					return heal, err
				}
			}
			return heal, nil
		},
		"all brokers: refused": func(context.Context, Fault) (func(context.Context) error, error) {
			heal := func(ctx context.Context) error { return healWires(ctx, c.wires.brokers...) }
			for _, w := range c.wires.brokers {
				if err := w.refuse(); err != nil {
					return heal, err
				}
			}
			return heal, nil
		},
		"Postgres: refused": func(context.Context, Fault) (func(context.Context) error, error) {
			return c.wires.postgres.heal, c.wires.postgres.refuse()
		},
		"Postgres: flapping":    c.flapping,
		"cut before COMMIT":     c.cutting(pgtest.CutBeforeCommit),
		"cut after COMMIT":      c.cutting(pgtest.CutAfterCommit),
		"cut around the insert": c.cutting(pgtest.CutBeforeInsert, pgtest.CutAfterInsert),
	}
	for _, t := range toxics {
		all["broker: "+t.name] = func(_ context.Context, f Fault) (func(context.Context) error, error) {
			w := c.wires.brokers[f.Target]
			return w.heal, w.toxic(t.direction, t.toxic, t.attributes)
		}
		all["Postgres: "+t.name] = func(context.Context, Fault) (func(context.Context) error, error) {
			w := c.wires.postgres
			return w.heal, w.toxic(t.direction, t.toxic, t.attributes)
		}
	}
	return all
}

// cutting cuts the wire to Postgres at these points of a transaction, again and again.
func (c *campaign) cutting(at ...pgtest.Cut) inject {
	return func(context.Context, Fault) (func(context.Context) error, error) {
		n, before := 0, c.wires.cut.Cuts()
		stop := meanwhile(400*time.Millisecond, func(context.Context) {
			c.wires.cut.Cut(at[n%len(at)])
			n++
		})
		return func(ctx context.Context) error {
			_ = stop(ctx)
			c.wires.cut.Cut(pgtest.CutNever)
			c.note("%d transactions were cut", c.wires.cut.Cuts()-before)
			return nil
		}, nil
	}
}

// flapping has Postgres there for two seconds and away for one, again and again.
func (c *campaign) flapping(context.Context, Fault) (func(context.Context) error, error) {
	w := c.wires.postgres
	stop := meanwhile(2*time.Second, func(ctx context.Context) {
		if err := w.refuse(); err != nil {
			c.note("flapping: %v", err)
			return
		}
		wait(ctx, time.Second)
		if err := w.heal(ctx); err != nil {
			c.note("flapping: %v", err)
		}
	})
	return func(ctx context.Context) error {
		return errors.Join(stop(ctx), w.heal(ctx))
	}, nil
}

func healWires(ctx context.Context, wires ...*wire) error {
	var errs []error
	for _, w := range wires {
		errs = append(errs, w.heal(ctx))
	}
	return errors.Join(errs...)
}

func (c *campaign) wholeWires(ctx context.Context) error {
	c.wires.cut.Cut(pgtest.CutNever)
	return healWires(ctx, c.wires.all()...)
}
