package kafka_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"docket/internal/consumer/shards"
	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

// inShard are the settings of a process of a shard.
func inShard(t testing.TB, c *kafkatest.Cluster, all, of string) (kafka.Config, kafka.SourceConfig) {
	t.Helper()
	cfg, sc := fast(c), small()
	cfg.Shares = map[string]*shards.Share{topic: shareOf(t, all, of)}
	sc.Group += "-" + of
	return cfg, sc
}

func shareOf(t testing.TB, all, of string) *shards.Share {
	t.Helper()
	m, wrong := shards.Parse(strings.Split(all, ","))
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return m.Share(of)
}

// Every partition of the share has one member, and no member has two more than another. A member keeps what it has, up to
// its part.
func TestDivide_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		partitions := slices.Sorted(slices.Values(rapid.SliceOfDistinct(rapid.Int32Range(0, 20), func(p int32) int32 { return p }).Draw(t, "partitions")))
		claims := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) kafka.Claim {
			return kafka.Claim{Generation: rapid.Int32Range(-1, 3).Draw(t, "generation"), Owned: rapid.SliceOfDistinct(rapid.Int32Range(0, 25), func(p int32) int32 { return p }).Draw(t, "owned")}
		}), 1, 5).Draw(t, "claims")
		owner := kafka.Divide(partitions, claims)
		if len(owner) != len(partitions) {
			t.Fatalf("%d of %d partitions have a member", len(owner), len(partitions))
		}
		has := make([]int, len(claims))
		for _, p := range partitions {
			i, there := owner[p]
			if !there {
				t.Fatalf("partition %d has no member", p)
			}
			has[i]++
		}
		if slices.Max(has)-slices.Min(has) > 1 {
			t.Fatalf("uneven: %v", has)
		}
		moved, latest := 0, map[int32]int32{}
		for _, c := range claims {
			for _, p := range c.Owned {
				if g, known := latest[p]; !known || c.Generation > g {
					latest[p] = c.Generation
				}
			}
		}
		single := make([]int, len(claims)) // valid claims of each
		for i, c := range claims {
			for _, p := range c.Owned {
				if slices.Contains(partitions, p) && latest[p] == c.Generation {
					single[i]++
					if owner[p] != i && !claimedTwice(claims, p) {
						moved++
					}
				}
			}
		}
		least := len(partitions) / len(claims)
		surplus := 0
		for _, n := range single {
			surplus += max(n-least, 0)
		}
		if moved > surplus {
			t.Fatalf("%d partitions moved, and %d had to", moved, surplus)
		}
	})
}

func claimedTwice(claims []kafka.Claim, p int32) bool {
	n := 0
	for _, c := range claims {
		if slices.Contains(c.Owned, p) {
			n++
		}
	}
	return n > 1
}

// Members of two shards join, leave and are thrown out at random moments. Each group commits its own partitions and no
// other, and in the end all of them.
func TestShare_EachItsOwn(t *testing.T) {
	t.Parallel()
	for seed := range seeds() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			shardHistory(t, uint64(seed))
		})
	}
}

func shardHistory(t *testing.T, seed uint64) {
	t.Helper()
	const all, partitions, records = "a=0-2,b=3-4,a=5", 6, 200
	random := rand.New(rand.NewPCG(seed, 1))
	c := kafkatest.New(t, kfake.SeedTopics(partitions, topic))
	for p := range int32(partitions) {
		c.Values(t, topic, p, values(records)...)
	}
	done := map[string]*book{"a": {}, "b": {}}
	members := map[string][]*member{}
	join := func(of string) {
		cfg, sc := inShard(t, c, all, of)
		members[of] = append(members[of], run(t, cfg, sc, erratic(seed, done[of])))
	}
	join("a")
	join("b")
	for range 8 {
		of := []string{"a", "b"}[random.IntN(2)]
		switch dice := random.IntN(6); {
		case dice < 2 && len(members[of]) < 3:
			join(of)
		case dice < 4 && len(members[of]) > 1:
			if err := members[of][0].end(); err != nil {
				t.Errorf("Run: %v", err)
			}
			members[of] = members[of][1:]
		case dice == 4:
			c.Fail(kmsg.Heartbeat, kerr.UnknownMemberID, 1)
		default:
			c.Fail(kmsg.OffsetCommit, kerr.UnknownMemberID, 1)
		}
		commits := c.Committed(t, group+"-"+of, topic)
		for p := range commits {
			if owner := shareOf(t, all, of); !owner.Has(p) {
				t.Fatalf("shard %s committed in partition %d", of, p)
			}
		}
	}
	for of, own := range map[string][]int32{"a": {0, 1, 2, 5}, "b": {3, 4}} {
		var last map[int32]int64
		kafkatest.Eventually(t, "shard "+of+" has committed all of its partitions", func() bool {
			last = c.Committed(t, group+"-"+of, topic)
			return !slices.ContainsFunc(own, func(p int32) bool { return last[p] != records })
		})
		if len(last) != len(own) {
			t.Errorf("shard %s committed %v, and has %v", of, last, own)
		}
		if lost := done[of].missing(last); len(lost) > 0 {
			t.Errorf("shard %s committed without a home: %v", of, lost)
		}
	}
}

// Partitions that are added within a range are read. Those beyond all ranges are nobody's: that is a fault, and it ends
// when the ranges do have them.
func TestShare_AddedPartitions(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(3, topic))
	cfg, sc := inShard(t, c, "a=0-1,b=2-4", "b")
	var seen book
	m := run(t, cfg, sc, storing(seen.note))
	kafkatest.Eventually(t, "one partition is assigned", func() bool { return m.Assigned() == 1 && m.Partitions() == 1 })
	if err := m.Fault(); err != nil {
		t.Fatalf("fault %v with partitions that all have a shard", err)
	}
	client := c.Client(t)
	defer client.Close()
	if _, err := kadm.NewClient(client).UpdatePartitions(t.Context(), 7, topic); err != nil {
		t.Fatal(err)
	}
	kafkatest.Eventually(t, "the added partitions of the range are read", func() bool { return m.Assigned() == 3 && m.Partitions() == 3 })
	kafkatest.Eventually(t, "the fault names the first partition of no shard", func() bool {
		f, ok := m.Fault().(*kafka.FaultError)
		return ok && f.Reason == kafka.ReasonUnowned && f.Partition == 5 && strings.Contains(f.Hint, "7 partitions, and 2 of them, from 5 on")
	})
	described, err := kadm.NewClient(client).DescribeGroups(t.Context(), sc.Group)
	if err != nil {
		t.Fatal(err)
	}
	if got := described.AssignedPartitions()[topic]; len(got) != 3 {
		t.Errorf("the group has the partitions %v", got)
	}
	if m.Unowned() != 2 {
		t.Errorf("%d partitions of no shard, want 2", m.Unowned())
	}
	for p := range int32(7) {
		c.Values(t, topic, p, "x")
	}
	kafkatest.Eventually(t, "the own partitions are committed", func() bool { return len(c.Committed(t, sc.Group, topic)) == 3 })
	if at := c.Committed(t, sc.Group, topic); at[2] != 1 || at[3] != 1 || at[4] != 1 {
		t.Errorf("committed %v", at)
	}
}

// Two processes that disagree about the ranges of a shard are never in its group together.
func TestShare_OtherRangesAreRefused(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(4, topic))
	cfg, sc := inShard(t, c, "a=0-1,b=2-3", "a")
	var mu sync.Mutex
	read := map[int32]bool{}
	first := run(t, cfg, sc, storing(func(p int32, _ int64) { mu.Lock(); read[p] = true; mu.Unlock() }))
	kafkatest.Eventually(t, "the first is assigned", func() bool { return first.Assigned() == 2 })
	for name, other := range map[string]string{"other ranges": "a=0-2,b=3", "no shards": ""} {
		cfg := cfg
		if other == "" {
			cfg.Shares = nil
		} else {
			cfg.Shares = map[string]*shards.Share{topic: shareOf(t, other, "a")}
		}
		second := run(t, cfg, sc, func(context.Context, *kafka.Assignment) error {
			t.Errorf("%s: a partition was assigned", name)
			return nil
		})
		kafkatest.Eventually(t, name+" is a fault", func() bool {
			f, ok := second.Fault().(*kafka.FaultError)
			return ok && f.Reason == kafka.ReasonGroup && strings.Contains(f.Hint, "give all programs the same DOCKET_SHARDS")
		})
		if err := second.end(); err != nil {
			t.Errorf("%s: Run: %v", name, err)
		}
	}
	if first.Assigned() != 2 || first.Fault() != nil {
		t.Errorf("the first has %d partitions, fault %v", first.Assigned(), first.Fault())
	}
}

// greedy gives every partition to the member that is a source, under the name of a shard. A program with a fault would.
type greedy struct {
	kgo.GroupBalancer

	name string
}

func (g greedy) ProtocolName() string { return g.name }

func (g greedy) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	of, err := kgo.NewConsumerBalancer(g, members)
	return of, of.MemberTopics(), err
}

func (g greedy) Balance(of *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	plan, members := of.NewPlan(), of.Members()
	to := max(slices.IndexFunc(members, func(m kmsg.JoinGroupResponseMember) bool { return strings.HasPrefix(m.MemberID, "docket") }), 0)
	for p := range topics[topic] {
		plan.AddPartition(&members[to], topic, p)
	}
	plan.AdjustCooperative(of)
	return plan
}

// Partitions that a leader of another kind hands out beyond the range are neither carried nor committed.
func TestShare_ForeignAssignmentRefused(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(4, topic))
	for p := range int32(4) {
		c.Values(t, topic, p, values(20)...)
	}
	cfg, sc := inShard(t, c, "a=0-1,b=2-3", "a")
	leader := c.Client(t, kgo.ClientID("leader"), kgo.ConsumerGroup(sc.Group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.Balancers(greedy{kgo.CooperativeStickyBalancer(), "docket-shard-a-0-1"}), kgo.HeartbeatInterval(30*time.Millisecond))
	defer leader.Close()
	kafkatest.Eventually(t, "the other leads the group", func() bool {
		g := c.GroupInfo(sc.Group)
		return g != nil && len(g.Members) == 1
	})
	var seen book
	m := run(t, cfg, sc, storing(seen.note))
	client := c.Client(t)
	defer client.Close()
	kafkatest.Eventually(t, "the leader has given all partitions to the source", func() bool {
		described, err := kadm.NewClient(client).DescribeGroups(t.Context(), sc.Group)
		if err != nil {
			return false
		}
		for _, member := range described[sc.Group].Members {
			if of, ok := member.Assigned.AsConsumer(); ok && strings.HasPrefix(member.MemberID, "docket") && len(of.Topics) == 1 && len(of.Topics[0].Partitions) == 4 {
				return true
			}
		}
		return false
	})
	kafkatest.Eventually(t, "the own partitions are committed", func() bool {
		at := c.Committed(t, sc.Group, topic)
		return at[0] == 20 && at[1] == 20
	})
	if n := m.Assigned(); n != 2 {
		t.Errorf("%d partitions are carried, want 2", n)
	}
	if at := c.Committed(t, sc.Group, topic); len(at) != 2 {
		t.Errorf("committed %v", at)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if len(seen.seen) != 2 {
		t.Errorf("records of partitions %v were carried", seen.seen)
	}
}

// A reader of a shard sees the partitions of the shard, so that what it counts is the shard's.
func TestShare_Reader(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(4, topic, "whole"))
	for p := range int32(4) {
		c.Values(t, topic, p, values(int(p)+1)...)
	}
	cfg, _ := inShard(t, c, "a=0-1,b=2-3", "b")
	r, err := kafka.NewReader(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ends, err := r.Ends(t.Context(), topic)
	if err != nil || len(ends) != 2 || ends[2] != 3 || ends[3] != 4 {
		t.Errorf("ends %v, %v", ends, err)
	}
	starts, err := r.Starts(t.Context(), topic)
	if err != nil || len(starts) != 2 {
		t.Errorf("starts %v, %v", starts, err)
	}
	n := 0
	if _, err := r.Scan(t.Context(), topic, nil, map[int32]int64{0: 9, 1: 9, 2: 9, 3: 9}, func(*kgo.Record) error { n++; return nil }); err != nil || n != 7 {
		t.Errorf("scanned %d records, want 7: %v", n, err)
	}
	client := c.Client(t)
	defer client.Close()
	foreign := kadm.Offsets{}
	foreign.AddOffset(topic, 0, 1, -1)
	foreign.AddOffset(topic, 3, 2, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), "g", foreign); err != nil {
		t.Fatal(err)
	}
	if at, err := r.Committed(t.Context(), "g", topic); err != nil || len(at) != 1 || at[3] != 2 {
		t.Errorf("committed %v, %v", at, err)
	}
	if ends, err := r.Ends(t.Context(), "whole"); err != nil || len(ends) != 4 {
		t.Errorf("another topic has %v, %v", ends, err)
	}
}

// A retry comes back to the shard that refused it, whichever partition its key has in the whole topic.
func TestShare_PublishesToItsOwn(t *testing.T) {
	t.Parallel()
	whole := kgo.StickyKeyPartitioner(nil).ForTopic(topic)
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "shard")
		n := rapid.IntRange(1, 9).Draw(t, "partitions")
		m, _ := shards.Parse([]string{"a=0-2", "b=3-7"})
		share := m.Share(of)
		own := kafka.PartitionerOf(map[string]*shards.Share{topic: share})
		key := rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "key")
		r := &kgo.Record{Topic: topic, Key: key}
		got := own.ForTopic(topic).Partition(r, n)
		switch p := whole.Partition(r, n); {
		case len(share.Shard.Ranges.Below(int32(n))) == 0:
			if got != -1 {
				t.Fatalf("partition %d of %d, and the shard has none", got, n)
			}
		case !share.Has(int32(got)) || got >= n:
			t.Fatalf("partition %d of %d is not of shard %s", got, n, of)
		case share.Has(int32(p)) && got != p:
			t.Fatalf("partition %d, and the key has %d of its own shard", got, p)
		case own.ForTopic(topic).Partition(r, n) != got:
			t.Fatal("the same key has two partitions")
		}
		if p := own.ForTopic(topic).Partition(&kgo.Record{Topic: topic}, n); p >= 0 && !share.Has(int32(p)) {
			t.Fatalf("without a key: partition %d", p)
		}
		if !own.ForTopic(topic).RequiresConsistency(r) {
			t.Fatal("partitions without a leader would not count")
		}
		backup := func(p kgo.Partitioner, topic string) int {
			return p.ForTopic(topic).(kgo.TopicBackupPartitioner).PartitionByBackup(r, n, nil) //nolint:forcetypeassert // it is one
		}
		if p := backup(own, "other"); p != whole.Partition(r, n) || backup(kafka.PartitionerOf(nil), topic) != p {
			t.Fatal("another topic is partitioned otherwise")
		}
	})
}
