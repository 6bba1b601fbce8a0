//go:build integration

package testenv

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
	"golang.org/x/sync/errgroup"
)

// clusterSize is enough to lose a broker and still have two in-sync replicas.
const clusterSize = 3

// KafkaCluster has three brokers. Each is also a controller, unless [ClusterOptions] change that. A topic has three
// replicas and takes records while two are in sync.
//
// Each broker has two addresses. A client that connects to an upstream address is sent to the advertised ones, where
// the cluster does not listen. The test puts proxies there, and no client can bypass them. Direct addresses bypass
// the proxies.
type KafkaCluster struct {
	brokers []*clusterBroker
}

type clusterBroker struct {
	*node
	advertised, upstream, direct string
}

// OwnCluster starts three brokers for this test only, until the test ends. Never run two clusters at once.
func OwnCluster(t testing.TB) *KafkaCluster {
	t.Helper()
	return OwnClusterWith(t, ClusterOptions{})
}

// ClusterOptions change a test's own cluster.
type ClusterOptions struct {
	// OneController makes only the first broker a controller. The others may be away at once without a new election.
	OneController bool
}

// OwnClusterWith is [OwnCluster] with options.
func OwnClusterWith(t testing.TB, options ClusterOptions) *KafkaCluster {
	t.Helper()
	docker := engine(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*startWait)
	defer cancel()
	inner, err := tcnetwork.New(ctx)
	must(t, "make a network", err)
	t.Cleanup(func() { _ = inner.Remove(context.WithoutCancel(t.Context())) }) // the reaper removes the rest
	cluster := &KafkaCluster{}
	t.Cleanup(func() { must(t, "remove the cluster", cluster.remove()) })
	for i := range clusterSize {
		b := &clusterBroker{}
		for _, addr := range []*string{&b.advertised, &b.upstream, &b.direct} {
			*addr, err = freeAddr()
			must(t, "Kafka", err)
		}
		ready := func(ctx context.Context) error { return serves(ctx, b.direct, 1) }
		b.node, err = boot(ctx, docker, clusterRequest(i+1, inner.Name, b, options),
			map[string]string{"9092/tcp": b.upstream, "9094/tcp": b.direct}, ready)
		must(t, "Kafka", err)
		cluster.brokers = append(cluster.brokers, b)
	}
	must(t, "Kafka", cluster.Await(ctx))
	return cluster
}

func clusterRequest(id int, network string, b *clusterBroker, options ClusterOptions) testcontainers.ContainerRequest {
	host := fmt.Sprintf("kafka%d", id)
	request := testcontainers.ContainerRequest{
		Image:          KafkaImage,
		Networks:       []string{network},
		NetworkAliases: map[string][]string{network: {host}},
		Env: brokerEnv(map[string]string{
			"KAFKA_NODE_ID":                  fmt.Sprint(id),
			"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka1:9093,2@kafka2:9093,3@kafka3:9093",
			"KAFKA_LISTENERS":                "INTERNAL://:19092,EXTERNAL://:9092,DIRECT://:9094,CONTROLLER://:9093",
			"KAFKA_ADVERTISED_LISTENERS": fmt.Sprintf("INTERNAL://%s:19092,EXTERNAL://%s,DIRECT://%s",
				host, b.advertised, b.direct),
			"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,DIRECT:PLAINTEXT,CONTROLLER:PLAINTEXT",

			"KAFKA_MIN_INSYNC_REPLICAS":                              "2",
			"KAFKA_DEFAULT_REPLICATION_FACTOR":                       "3",
			"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":                 "3",
			"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":                     "6",
			"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR":         "3",
			"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":                    "2",
			"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "3",
			"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR":            "2",

			"KAFKA_HEAP_OPTS": "-Xms192m -Xmx384m",
		}),
	}
	if options.OneController {
		request.Env["KAFKA_CONTROLLER_QUORUM_VOTERS"] = "1@kafka1:9093"
		request.Env["KAFKA_BROKER_SESSION_TIMEOUT_MS"] = "9000" // a test of elections must have no others, even on a busy machine
	}
	if options.OneController && id > 1 {
		request.Env["KAFKA_PROCESS_ROLES"] = "broker"
		request.Env["KAFKA_LISTENERS"] = strings.TrimSuffix(request.Env["KAFKA_LISTENERS"], ",CONTROLLER://:9093")
	}
	return request
}

// Size is the number of brokers.
func (k *KafkaCluster) Size() int { return len(k.brokers) }

// Broker returns the handle of broker i, from 0.
func (k *KafkaCluster) Broker(i int) Handle { return k.brokers[i].Handle() }

// Advertised is the address that clients get for broker i; a proxy must listen there.
func (k *KafkaCluster) Advertised(i int) string { return k.brokers[i].advertised }

// Upstream is the address behind the proxy of broker i.
func (k *KafkaCluster) Upstream(i int) string { return k.brokers[i].upstream }

// Direct are seed brokers that bypass every proxy.
func (k *KafkaCluster) Direct() []string {
	var addrs []string
	for _, b := range k.brokers {
		addrs = append(addrs, b.direct)
	}
	return addrs
}

// Await returns once all brokers are registered and every partition has a leader.
func (k *KafkaCluster) Await(ctx context.Context) error {
	tick := time.NewTicker(5 * pollPause)
	defer tick.Stop()
	for {
		var err error
		for _, b := range k.brokers {
			attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
			err = serves(attempt, b.direct, len(k.brokers))
			cancel()
			if err != nil {
				break
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster is not ready in time: %w", err)
		case <-tick.C:
		}
	}
}

// CreateTopic makes a topic with this many partitions and a replica on each broker.
func (k *KafkaCluster) CreateTopic(ctx context.Context, topic string, partitions int32, settings map[string]string) error {
	if err := createTopic(ctx, k.Direct(), topic, partitions, clusterSize, settings); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return nil
}

// remove ends all brokers at once, because a single one would wait in vain for its quorum.
func (k *KafkaCluster) remove() error {
	var all errgroup.Group
	for _, b := range k.brokers {
		all.Go(b.node.remove)
	}
	return all.Wait()
}
