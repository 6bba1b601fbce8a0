//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const adminLimit = 15 * time.Second // for one request of the campaign to the brokers

func (c *campaign) brokerFaults() map[string]inject {
	return map[string]inject{
		"broker killed": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			return c.brokersEnd(ctx, f.Target)
		},
		"two brokers killed": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			return c.brokersEnd(ctx, f.Target, (f.Target+1)%Brokers)
		},
		"broker paused": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			return c.brokersPause(ctx, f.Target)
		},
		"all brokers paused": func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			return c.brokersPause(ctx, 0, 1, 2)
		},
		"leaders moved": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			return nil, c.moveLeaders(ctx, f.Target)
		},
		"leaders moved again and again": func(ctx context.Context, f Fault) (func(context.Context) error, error) {
			n := f.Target
			return meanwhile(2*time.Second, func(ctx context.Context) {
				n++
				if err := c.moveLeaders(ctx, n); err != nil {
					c.note("leaders not moved: %v", err)
				}
			}), nil
		},
	}
}

func (c *campaign) brokersEnd(ctx context.Context, numbers ...int) (func(context.Context) error, error) {
	heal := func(ctx context.Context) error {
		var errs []error
		started := make(chan error, len(numbers))
		for _, n := range numbers { // at once: one alone waits in vain for its quorum
			go func() { started <- c.cluster.Broker(n).Start(ctx) }()
		}
		for range numbers {
			errs = append(errs, <-started)
		}
		return errors.Join(errs...)
	}
	if err := c.inSyncEverywhere(ctx); err != nil {
		return nil, err
	}
	ended := make(chan error, len(numbers))
	for _, n := range numbers {
		go func() { ended <- c.cluster.Broker(n).End(ctx, "SIGKILL") }()
	}
	var errs []error
	for range numbers {
		errs = append(errs, <-ended)
	}
	return heal, errors.Join(errs...)
}

// inSyncEverywhere is an error unless every replica is in sync. A broker that was killed counts as having lost what it
// had: to kill the last in-sync replica of a partition leaves it without a leader for ever, which is Kafka's to prevent
// by its operators.
func (c *campaign) inSyncEverywhere(ctx context.Context) error {
	return c.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		details, err := adm.ListTopicsWithInternal(ctx)
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		out := 0
		details.EachPartition(func(p kadm.PartitionDetail) {
			if len(p.ISR) < Brokers {
				out++
			}
		})
		if out > 0 {
			return fmt.Errorf("%d partitions have a replica that is not in sync", out)
		}
		return nil
	})
}

func (c *campaign) brokersPause(ctx context.Context, numbers ...int) (func(context.Context) error, error) {
	heal := func(ctx context.Context) error {
		for _, n := range numbers {
			if err := c.cluster.Broker(n).Thaw(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	for _, n := range numbers {
		if err := c.cluster.Broker(n).Pause(ctx); err != nil {
			return heal, err
		}
	}
	return heal, nil
}

// admin runs requests to the brokers, past every proxy.
func (c *campaign) admin(ctx context.Context, do func(context.Context, *kadm.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, adminLimit)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.cluster.Direct()...))
	if err != nil {
		return err
	}
	defer cl.Close()
	return do(ctx, kadm.NewClient(cl))
}

// moveLeaders makes another replica of every partition the preferred one and elects it. The partitions of committed
// offsets are included, so that the coordinators move as well.
func (c *campaign) moveLeaders(ctx context.Context, by int) error {
	return c.reorder(ctx, func(p kadm.PartitionDetail) []int32 {
		var order []int32
		for i := range p.Replicas {
			order = append(order, p.Replicas[(i+1+by%2)%len(p.Replicas)])
		}
		return order
	})
}

// reorder gives every partition its replicas in another order, and elects the first one.
func (c *campaign) reorder(ctx context.Context, order func(kadm.PartitionDetail) []int32) error {
	return c.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		details, err := adm.ListTopics(ctx, append(c.topics(), c.places.ParkingTopic, c.places.DLQTopic, "__consumer_offsets")...)
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		var moves kadm.AlterPartitionAssignmentsReq
		elect := make(kadm.TopicsSet)
		details.EachPartition(func(p kadm.PartitionDetail) {
			moves.Assign(p.Topic, p.Partition, order(p))
			elect.Add(p.Topic, p.Partition)
		})
		moved, err := adm.AlterPartitionAssignments(ctx, moves)
		if err == nil {
			err = moved.Error()
		}
		if err != nil {
			return fmt.Errorf("reassign partitions: %w", err)
		}
		elected, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, elect)
		if err != nil {
			return fmt.Errorf("elect leaders: %w", err)
		}
		won := 0
		for _, partitions := range elected {
			for _, p := range partitions {
				if p.Err == nil {
					won++
				} else if !errors.Is(p.Err, kerr.ElectionNotNeeded) {
					err = p.Err
				}
			}
		}
		c.note("%d leaders moved", won)
		if won == 0 {
			return err
		}
		return nil
	})
}

// wholeCluster has every broker run and let in.
func (c *campaign) wholeCluster(ctx context.Context) error {
	for i := range Brokers {
		b := c.cluster.Broker(i)
		if err := b.Thaw(ctx); err != nil {
			return err
		}
		running, err := b.Running(ctx)
		if err != nil {
			return err
		}
		if running {
			continue
		}
		if err := b.Start(ctx); err != nil {
			return err
		}
	}
	return c.cluster.Await(ctx)
}
