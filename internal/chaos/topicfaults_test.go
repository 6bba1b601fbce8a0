//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
)

// unwritable is more in-sync replicas than there are brokers: what is produced with acks=all is refused.
const unwritable = Brokers + 1

func (c *campaign) topicFaults() map[string]inject {
	return map[string]inject{
		"dead-letter topic takes nothing": func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			return c.refusing(ctx, c.places.DLQTopic)
		},
		"parking topic takes nothing": func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			return c.refusing(ctx, c.places.ParkingTopic)
		},
		"database away, parking takes nothing": func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			heal, err := c.refusing(ctx, c.places.ParkingTopic)
			if err == nil {
				err = c.wires.postgres.refuse()
			}
			return func(ctx context.Context) error { return errors.Join(heal(ctx), c.wires.postgres.heal(ctx)) }, err
		},
		"no home at all": c.noHome,
	}
}

// refusing has topics take nothing.
func (c *campaign) refusing(ctx context.Context, topics ...string) (func(context.Context) error, error) {
	heal := func(ctx context.Context) error { return c.inSync(ctx, 2, topics...) }
	return heal, c.inSync(ctx, unwritable, topics...)
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
func (c *campaign) noHome(ctx context.Context, _ Fault) (func(context.Context) error, error) {
	heal, err := c.refusing(ctx, c.places.DLQTopic, c.places.ParkingTopic, c.places.ParkingDLQ)
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
