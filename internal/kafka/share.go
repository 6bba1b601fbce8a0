package kafka

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/consumer/shards"
)

// shareBalancer divides the partitions of a share among the members of its group, evenly and cooperatively. The other
// partitions of the topic stay without a member. Its name has the ranges: brokers refuse a member with other ranges, or
// with none, as long as the group has a member.
type shareBalancer struct {
	kgo.GroupBalancer // the cooperative sticky one, for the metadata

	share *shards.Share
}

func balancerOf(share *shards.Share) kgo.GroupBalancer {
	inner := kgo.CooperativeStickyBalancer()
	if share == nil {
		return inner
	}
	return &shareBalancer{inner, share}
}

// ProtocolName is the name that all members of a group must have in common.
func (b *shareBalancer) ProtocolName() string {
	return "docket-shard-" + b.share.Shard.Name + "-" + b.share.Shard.Ranges.String()
}

// MemberBalancer returns the balancer for these members.
func (b *shareBalancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	of, err := kgo.NewConsumerBalancer(b, members)
	if err != nil {
		return nil, nil, fmt.Errorf("balance a shard: %w", err)
	}
	return of, of.MemberTopics(), nil
}

// Balance plans who has which partition. A member keeps what it has, up to its part.
func (b *shareBalancer) Balance(of *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	plan := of.NewPlan()
	for topic, n := range topics {
		members := interested(of, topic)
		for p, m := range divide(b.share.Shard.Ranges.Below(n), members) {
			plan.AddPartition(members[m].member, topic, p)
		}
	}
	plan.AdjustCooperative(of)
	return plan
}

// candidate is a member that reads a topic, and what it says that it has of it.
type candidate struct {
	member     *kmsg.JoinGroupResponseMember
	generation int32
	owned      []int32
}

func interested(of *kgo.ConsumerBalancer, topic string) (all []candidate) {
	of.EachMember(func(member *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
		if !slices.Contains(meta.Topics, topic) {
			return
		}
		c := candidate{member: member, generation: meta.Generation}
		for _, owned := range meta.OwnedPartitions {
			if owned.Topic == topic {
				c.owned = append(c.owned, owned.Partitions...)
			}
		}
		all = append(all, c)
	})
	return all
}

// divide gives each partition one of the members, by index. No member has two more than another. A member keeps what it
// has as far as that allows. If several claim a partition, the one of the latest generation has it.
func divide(partitions []int32, members []candidate) map[int32]int {
	owner := make(map[int32]int, len(partitions))
	if len(members) == 0 {
		return owner
	}
	claims := make(map[int32]int)
	for i, m := range members {
		for _, p := range m.owned {
			if other, taken := claims[p]; !taken || members[other].generation < m.generation {
				claims[p] = i
			}
		}
	}
	least, more := len(partitions)/len(members), len(partitions)%len(members)
	kept := make([][]int32, len(members))
	var free []int32
	for _, p := range partitions {
		if i, taken := claims[p]; taken {
			kept[i] = append(kept[i], p)
		} else {
			free = append(free, p)
		}
	}
	// Those with most keep one more, as far as there are such places.
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(kept[b]), len(kept[a])) })
	quota := make([]int, len(members))
	for n, i := range order {
		quota[i] = least
		if n < more {
			quota[i]++
		}
		if len(kept[i]) > quota[i] {
			free = append(free, kept[i][quota[i]:]...)
			kept[i] = kept[i][:quota[i]]
		}
		for _, p := range kept[i] {
			owner[p] = i
		}
	}
	slices.Sort(free)
	for _, i := range order {
		for range quota[i] - len(kept[i]) {
			owner[free[0]] = i
			free = free[1:]
		}
	}
	return owner
}

// sharePartitioner sends records of shared topics into the partitions of a share. The retry of a record so comes back to
// the server that refused it. All other topics are as ever.
type sharePartitioner struct {
	kgo.Partitioner

	shares map[string]*shards.Share
}

func (p sharePartitioner) ForTopic(topic string) kgo.TopicPartitioner {
	if share := p.shares[topic]; share != nil {
		return &topicShare{kgo.StickyKeyPartitioner(nil).ForTopic(topic), share}
	}
	return p.Partitioner.ForTopic(topic)
}

type topicShare struct {
	byKey kgo.TopicPartitioner // as Java clients do
	share *shards.Share
}

// RequiresConsistency makes the client count all partitions, those without a leader too.
func (*topicShare) RequiresConsistency(*kgo.Record) bool { return true }

// Partition returns the partition that the key has in the whole topic, if it is in the share. Otherwise it is one of the
// share, for equal keys the same. -1 means that the topic has no partition of the share; the client then refuses the
// record.
func (t *topicShare) Partition(r *kgo.Record, n int) int {
	own := t.share.Shard.Ranges.Below(int32(n))
	if len(own) == 0 {
		return -1
	}
	if r.Key == nil {
		return int(own[rand.IntN(len(own))]) //nolint:gosec // any partition will do
	}
	p := t.byKey.Partition(r, n)
	if t.share.Has(int32(p)) {
		return p
	}
	return int(own[p%len(own)])
}

// partitionerOf returns the partitioner of a publisher. shares is by topic.
func partitionerOf(shares map[string]*shards.Share) kgo.Partitioner {
	byKey := kgo.UniformBytesPartitioner(64<<10, true, true, nil) // as Java clients do
	if len(shares) == 0 {
		return byKey
	}
	return sharePartitioner{byKey, shares}
}
