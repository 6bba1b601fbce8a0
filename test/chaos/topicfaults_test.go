//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A topic takes nothing when it wants every replica in sync and one broker is frozen: a produce with acks=all is
// refused then. The source topic, which wants two, still takes records.
const wantsAll = Brokers

func (c *campaign) topicFaults() map[string]inject {
	return map[string]inject{
		"dead-letter topic takes nothing": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			return c.refusing(ctx, f.Target, c.places.DLQTopic)
		},
		"parking topic takes nothing": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			return c.refusing(ctx, f.Target, c.places.ParkingTopic)
		},
		"database away, parking takes nothing": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			heal, err := c.refusing(ctx, f.Target, c.places.ParkingTopic)
			if err == nil {
				err = c.wires.postgres.refuse()
			}
			return func(ctx context.Context) error { return errors.Join(heal(ctx), c.wires.postgres.heal(ctx)) }, err
		},
		"no home at all": c.noHome,
	}
}

// refusing has topics take nothing, by freezing one broker.
func (c *campaign) refusing(ctx context.Context, broker int, topics ...string) (func(context.Context) error, error) {
	if err := c.inSync(ctx, wantsAll, topics...); err != nil {
		return func(ctx context.Context) error { return c.inSync(ctx, 2, topics...) }, err
	}
	thaw, err := c.brokersPause(ctx, broker)
	return func(ctx context.Context) error { return errors.Join(thaw(ctx), c.inSync(ctx, 2, topics...)) }, err
}

func (c *campaign) inSync(ctx context.Context, replicas int, topics ...string) error {
	value := strconv.Itoa(replicas)
	return c.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		answers, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "min.insync.replicas", Value: &value}}, topics...)
		if err != nil {
			return fmt.Errorf("set min.insync.replicas: %w", err)
		}
		for _, a := range answers {
			if a.Err != nil {
				return fmt.Errorf("set min.insync.replicas of %s: %w", a.Name, a.Err)
			}
		}
		return nil
	})
}

// noHome takes every home away: table, topics and spools.
func (c *campaign) noHome(ctx context.Context, f Fault) (func(context.Context) error, error) {
	heal, err := c.refusing(ctx, f.Target, c.places.DLQTopic, c.places.ParkingTopic, c.places.ParkingDLQ)
	undo := func(ctx context.Context) error {
		return errors.Join(heal(ctx), c.wires.postgres.heal(ctx), c.emptySpools())
	}
	if err != nil {
		return undo, err
	}
	if err := c.wires.postgres.toxic("both", "timeout", attributes{"timeout": 0}); err != nil {
		return undo, err
	}
	return undo, c.fillSpools()
}

// takeAll has every topic take records again.
func (c *campaign) takeAll(ctx context.Context) error {
	return c.inSync(ctx, 2, c.places.DLQTopic, c.places.ParkingTopic, c.places.ParkingDLQ)
}
