//go:build integration

package e2e

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/testkit/testenv"
)

// cluster is three brokers without the proxies that a campaign puts before them.
type cluster struct{ *testenv.KafkaCluster }

func (c cluster) Brokers() []string { return c.Direct() }

func (c cluster) CreateTopic(t testing.TB, topic string, partitions int32, settings map[string]string) {
	t.Helper()
	if err := c.KafkaCluster.CreateTopic(t.Context(), topic, partitions, settings); err != nil {
		t.Fatal(err)
	}
}

// createOn makes a topic whose partitions have their replicas on these brokers, leaders first.
func (c cluster) createOn(t *testing.T, topic string, replicas map[int32][]int32, settings map[string]string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, -1, -1
	for p, on := range replicas {
		assignment := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		assignment.Partition, assignment.Replicas = p, on
		rt.ReplicaAssignment = append(rt.ReplicaAssignment, assignment)
	}
	for name, value := range settings {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = name, &value
		rt.Configs = append(rt.Configs, config)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 30_000, append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
}

// leads waits until a partition of the source has that leader and so many replicas in sync.
func (s *system) leads(partition, leader int32, inSync int) {
	s.t.Helper()
	adm := s.admin()
	eventually(s.t, patience, fmt.Sprintf("broker %d leads partition %d", leader, partition), func() error {
		meta, err := adm.Metadata(s.t.Context(), s.places.Topic)
		if err != nil {
			return err
		}
		p := meta.Topics[s.places.Topic].Partitions[partition]
		if p.Leader != leader || len(p.ISR) != inSync {
			return fmt.Errorf("the leader is %d, in sync are %v", p.Leader, p.ISR)
		}
		return nil
	})
}

// TestElection_Unclean has a log that was cut by the election of a replica that was not in sync. The consumer had committed the lost
// records. The partition holds, also in the consumer's next life, until somebody follows the hint. The other one continues.
func TestElection_Unclean(t *testing.T) {
	t.Parallel()
	const leader, follower = 2, 3 // of partition 0; the first broker is there all the time
	k := cluster{testenv.OwnClusterWith(t, testenv.ClusterOptions{OneController: true})}
	s := bareSystem(t, k, testenv.Postgres(t).Database(t))
	k.createOn(t, s.places.Topic, map[int32][]int32{0: {leader, follower}, 1: {1, leader}},
		map[string]string{"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
	for _, topic := range []string{s.places.DLQTopic, s.places.ParkingTopic, s.places.ParkingDLQ} {
		k.CreateTopic(t, topic, 1, nil)
	}
	s.migrate()
	c := s.consumer()
	s.sendTo(0, "kept", 10)
	s.commits(0, 10)

	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(k.Broker(follower-1).End(ctx, "SIGTERM"))
	s.leads(0, leader, 1)
	s.sendTo(0, "lost", 10, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	s.commits(0, 20)
	must(k.Broker(leader-1).End(ctx, "SIGKILL"))
	must(k.Broker(follower - 1).Start(ctx))
	s.leads(0, follower, 1)
	s.sendTo(0, "new", 15) // the log is longer than it was

	hint := c.hint("kafka_truncated")
	s.sendTo(1, "beside", 5)
	s.keeps("beside", 5)
	c.stop()
	c = s.consumer()
	if again := c.hint("kafka_truncated"); again != hint {
		t.Errorf("after a restart the hint is %q, before %q", again, hint)
	}
	s.commits(0, 20)
	c.stop()
	s.follow(k.Broker(0), hint)
	s.commits(0, 10)

	c = s.consumer()
	s.keeps("new", 15)
	s.commits(0, 25)
	s.settles(c, 40) // those that the table had before the election stay
	s.verify(0, "--settled")
}
