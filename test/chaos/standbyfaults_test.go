//go:build integration

package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// The programs have one address, as a virtual IP, a proxy or a cloud's endpoint gives it: after a promotion it leads to the
// new primary. So every fault of the wire and every cut at COMMIT is there before and after.

func (c *campaign) standbyFaults() map[string]inject {
	if c.pair == nil {
		return nil
	}
	linked := func(direction, toxic string, a attributes) inject {
		return func(context.Context, Fault) (func(context.Context) error, error) {
			return c.wires.link.heal, c.wires.link.toxic(direction, toxic, a)
		}
	}
	ended := func(signal string) inject {
		return func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			standby := c.pair.Standby.Handle()
			return standby.Start, standby.End(ctx, signal)
		}
	}
	return map[string]inject{
		LinkDark:                       linked("both", "timeout", dark),
		"link to the standby: latency": linked("both", "latency", attributes{"latency": 300, "jitter": 200}),
		"link to the standby: slow":    linked("both", "bandwidth", attributes{"rate": 40}), // KB/s
		"standby paused": func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			standby := c.pair.Standby.Handle()
			return standby.Thaw, standby.Pause(ctx)
		},
		"standby stopped": ended("SIGINT"),
		"standby killed":  ended("SIGKILL"),
		WaitsCanceled:     c.waitsCanceled,

		"standby promoted, primary killed":   c.promotion(takeover{kill: true}),
		"standby promoted, primary still up": c.promotion(takeover{}),
		"standby promoted, programs first":   c.promotion(takeover{kill: true, early: true}),
		PromotedAfterCancels:                 c.promotion(takeover{kill: true, cancel: true}),
	}
}

var dark = attributes{"timeout": 0}

// waitsCanceled cuts the standby off and cancels the wait of every COMMIT, as an operator does who sees it hang: the row
// is there then, on the primary alone.
func (c *campaign) waitsCanceled(ctx context.Context, f Fault) (func(context.Context) error, error) {
	before := c.canceled.Load()
	if err := c.wires.link.toxic("both", "timeout", dark); err != nil {
		return c.wires.link.heal, err
	}
	stop := c.cancelling()
	heal := func(ctx context.Context) error { return errors.Join(stop(ctx), c.wires.link.heal(ctx)) }
	for until := time.Now().Add(max(f.Length, c.patience)); c.canceled.Load() == before; {
		if time.Now().After(until) || !wait(ctx, 100*time.Millisecond) {
			return heal, errors.New("nobody waited for the standby")
		}
	}
	return heal, nil
}

// cancelling cancels what waits for the standby, again and again.
func (c *campaign) cancelling() (stop func(context.Context) error) {
	return meanwhile(200*time.Millisecond, func(ctx context.Context) {
		n, err := c.database.cancelWaits(ctx)
		if err != nil && ctx.Err() == nil {
			c.note("waits not canceled: %v", err)
		}
		c.canceled.Add(n)
	})
}

// cancelWaits cancels every wait of the programs for the standby and gives their number.
func (d *database) cancelWaits(ctx context.Context) (n int64, err error) {
	err = d.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = '"+role+"'").Scan(&n)
	})
	return n, err
}

// takeover is how a standby becomes the primary.
type takeover struct {
	cancel bool // waits for it are canceled while it is cut off
	kill   bool // the primary is killed before; if not, the programs use it for a while after
	early  bool // the programs come while it still takes reads only
}

// apart is how long the programs use a server that is not the primary.
const apart = 2 * time.Second

// promotion cuts the standby off, which the programs notice for half of the time, and has it take over. Healing copies
// the new primary into the place of the old one, as its synchronous standby.
func (c *campaign) promotion(how takeover) inject {
	return func(ctx context.Context, f Fault) (func(context.Context) error, error) {
		promoted := false
		heal := func(ctx context.Context) error {
			if !promoted {
				return errors.Join(c.follow(), c.wholeStandby(ctx))
			}
			return c.rejoin(ctx)
		}
		if err := c.cutOff(ctx, f.Length/2, how); err != nil {
			return heal, err
		}
		if how.early {
			if err := c.wires.cut.Lead(c.pair.Standby.URL("postgres")); err != nil {
				return heal, err
			}
			wait(ctx, apart)
		}
		promoting, cancel := context.WithTimeout(ctx, healLimit)
		defer cancel()
		if err := c.pair.Promote(promoting); err != nil {
			return heal, err
		}
		promoted = true
		c.disks.swap()
		c.promotions.Add(1)
		if f.Target == 0 {
			// Without this the server waits for a standby at once: it is a copy, its settings too.
			if err := c.pair.Alone(promoting); err != nil {
				return heal, err
			}
		}
		if !how.kill {
			wait(ctx, apart)
		}
		return heal, c.follow()
	}
}

// cutOff ends the link, and the primary where it is to be killed, after a while.
func (c *campaign) cutOff(ctx context.Context, while time.Duration, how takeover) error {
	if err := c.wires.link.toxic("both", "timeout", dark); err != nil {
		return err
	}
	stop := func(context.Context) error { return nil }
	if how.cancel {
		stop = c.cancelling()
	}
	wait(ctx, while)
	_ = stop(ctx) // it only ends
	if how.kill {
		return c.primary().End(ctx, "SIGKILL")
	}
	return nil
}

// follow has the programs and the campaign go to the primary.
func (c *campaign) follow() error {
	url := writable(c.pair.Primary.URL("postgres"))
	c.database.lead(url)
	return c.wires.cut.Lead(url)
}

// rejoin gives the promoted server its standby. It can be tried again.
func (c *campaign) rejoin(ctx context.Context) error {
	if err := errors.Join(c.follow(), c.wires.link.heal(ctx)); err != nil {
		return err
	}
	began := time.Now()
	if err := c.pair.Rejoin(ctx); err != nil {
		return err
	}
	c.note("a copy of the primary took %v", time.Since(began).Round(time.Millisecond))
	return c.pair.Synchronous(ctx)
}

// wholeStandby has both servers run and the primary wait for its standby.
func (c *campaign) wholeStandby(ctx context.Context) error {
	if c.pair == nil {
		return nil
	}
	if err := c.wires.link.heal(ctx); err != nil {
		return err
	}
	standby := c.pair.Standby.Handle()
	if err := standby.Thaw(ctx); err != nil {
		return err
	}
	if err := errors.Join(c.primary().Start(ctx), standby.Start(ctx)); err != nil { // no effect on one that runs
		return err
	}
	return c.pair.Synchronous(ctx)
}
