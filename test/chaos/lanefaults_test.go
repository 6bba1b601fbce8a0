//go:build integration

package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// learned is how long clients may take to learn from an error that a leader has moved.
const learned = 2 * time.Second

func (c *campaign) laneFaults() map[string]inject {
	if !c.lanes {
		return nil
	}
	return map[string]inject{LaneUnread: c.laneUnread}
}

// laneUnread has one broker lead all partitions of a lane and nothing else, and the wire to it swallow everything. The
// other lanes have their leaders and coordinators on the other brokers.
func (c *campaign) laneUnread(ctx context.Context, f Fault) (func(context.Context) error, error) {
	topic, broker := c.topics()[f.Target/Brokers], f.Target%Brokers
	if err := c.leadApart(ctx, topic, int32(broker+1)); err != nil { // ids of brokers count from 1
		return nil, err
	}
	// A client that learns the new leaders from a broker that is dark by now waits for its answer in vain.
	wait(ctx, learned)
	w := c.wires.brokers[broker]
	return w.heal, w.toxic("both", "timeout", dark)
}

// leadApart has one broker lead a topic and nothing else.
func (c *campaign) leadApart(ctx context.Context, topic string, broker int32) error {
	err := c.reorder(ctx, func(p kadm.PartitionDetail) []int32 {
		others := slices.DeleteFunc(slices.Clone(p.Replicas), func(id int32) bool { return id == broker })
		if p.Topic == topic {
			return append([]int32{broker}, others...)
		}
		return append(others, broker)
	})
	if err != nil {
		return err
	}
	return c.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		details, err := adm.ListTopics(ctx, c.topics()...)
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		wrong := 0
		details.EachPartition(func(p kadm.PartitionDetail) {
			if (p.Leader == broker) != (p.Topic == topic) {
				wrong++
			}
		})
		if wrong > 0 {
			return fmt.Errorf("%d leaders have not moved yet", wrong)
		}
		return nil
	})
}
