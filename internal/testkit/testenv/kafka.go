//go:build integration

package testenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KafkaImage is the image that Kafka is started from.
const KafkaImage = "apache/kafka:4.3.1"

// KafkaServer is a single node of Kafka, broker and controller in one.
type KafkaServer struct {
	*node

	addr string // host:port on loopback
}

// Kafka returns the broker that all tests of the binary share. All of them feel what a test does to it. A test that
// pauses or kills must not run in parallel, or must use [OwnKafka].
func Kafka(t testing.TB) *KafkaServer {
	t.Helper()
	docker := engine(t)
	server, err := shared.kafka.get(func() (*KafkaServer, error) { return startKafka(docker, KafkaOptions{Env: steady}) })
	must(t, "Kafka", err)
	return server
}

// steady is for a broker that nobody kills. Missed heartbeats on a busy machine must not count as its death, because
// it would lose its partitions and groups for a while.
var steady = map[string]string{
	"KAFKA_BROKER_SESSION_TIMEOUT_MS":    "30000",
	"KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "2000",
}

// OwnKafka starts a broker for this test only, until the test ends.
func OwnKafka(t testing.TB) *KafkaServer {
	t.Helper()
	return OwnKafkaWith(t, KafkaOptions{})
}

// KafkaOptions change a test's own broker.
type KafkaOptions struct {
	Env         map[string]string // for the image, in addition to the usual settings
	HostNetwork bool              // no proxy between broker and client, for measurements
}

// OwnKafkaWith is [OwnKafka] with options.
func OwnKafkaWith(t testing.TB, options KafkaOptions) *KafkaServer {
	t.Helper()
	server, err := startKafka(engine(t), options)
	must(t, "Kafka", err)
	t.Cleanup(func() { must(t, "remove Kafka", server.remove()) })
	return server
}

func startKafka(docker *testcontainers.DockerClient, options KafkaOptions) (*KafkaServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	req := testcontainers.ContainerRequest{Image: KafkaImage, Env: brokerEnv(map[string]string{
		"KAFKA_NODE_ID":                        "1",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":       "1@localhost:9093",
		"KAFKA_LISTENERS":                      "INTERNAL://:19092,EXTERNAL://:9092,CONTROLLER://:9093",
		"KAFKA_ADVERTISED_LISTENERS":           "INTERNAL://localhost:19092,EXTERNAL://" + addr,
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",

		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":                 "1",
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR":         "1",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":                    "1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR":            "1",
		"KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS":                     "1000",

		"KAFKA_HEAP_OPTS": "-Xms256m -Xmx512m",
	})}
	ports := map[string]string{"9092/tcp": addr}
	if options.HostNetwork {
		if err := listenOnHost(req.Env, addr); err != nil {
			return nil, err
		}
		req.HostConfigModifier, ports = onHost, nil
	}
	maps.Copy(req.Env, options.Env)
	server := &KafkaServer{addr: addr}
	ready := func(ctx context.Context) error { return serves(ctx, addr, 1) }
	server.node, err = launch(docker, req, ports, ready)
	if err != nil {
		return nil, err
	}
	return server, nil
}

// listenOnHost gives a broker that shares this machine's network its own ports.
func listenOnHost(env map[string]string, addr string) error {
	internal, err := freeAddr()
	if err != nil {
		return err
	}
	controller, err := freeAddr()
	if err != nil {
		return err
	}
	env["KAFKA_CONTROLLER_QUORUM_VOTERS"] = "1@" + controller
	env["KAFKA_LISTENERS"] = "INTERNAL://" + internal + ",EXTERNAL://" + addr + ",CONTROLLER://" + controller
	env["KAFKA_ADVERTISED_LISTENERS"] = "INTERNAL://" + internal + ",EXTERNAL://" + addr
	return nil
}

// brokerEnv returns the usual settings of every broker, and those of one broker. One setting alone would drop the
// image's defaults, so all are needed.
func brokerEnv(settings map[string]string) map[string]string {
	env := map[string]string{
		"KAFKA_PROCESS_ROLES":                    "broker,controller",
		"KAFKA_CONTROLLER_LISTENER_NAMES":        "CONTROLLER",
		"KAFKA_INTER_BROKER_LISTENER_NAME":       "INTERNAL",
		"KAFKA_LOG_DIRS":                         "/var/lib/kafka/data",
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":        "false",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",

		// A killed broker is forgotten sooner, so that it can return sooner.
		"KAFKA_BROKER_SESSION_TIMEOUT_MS":    "3000",
		"KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "500",

		"KAFKA_JVM_PERFORMANCE_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
	}
	maps.Copy(env, settings)
	return env
}

// Brokers returns the seed brokers, which stay the same.
func (k *KafkaServer) Brokers() []string { return []string{k.addr} }

// Restart stops the broker cleanly and starts it again.
func (k *KafkaServer) Restart(t testing.TB) {
	t.Helper()
	k.signal(t, "SIGTERM")
	k.Start(t)
}

// serves asks for all metadata. This many brokers must be registered, and every partition must have a leader.
func serves(ctx context.Context, addr string, brokers int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(0), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer cl.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = nil // all topics
	answer, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if len(answer.Brokers) < brokers {
		return errors.New("the controller has not let every broker in")
	}
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return fmt.Errorf("a partition is not served: %w", err)
			}
		}
	}
	return nil
}

var prefixes atomic.Int64

// Prefix returns a unique prefix for topic and group names.
func Prefix(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%.80s-%d-", name, prefixes.Add(1))
}

// CreateTopic makes a topic with this many partitions. Settings are Kafka's own, such as "max.message.bytes"; nil
// means the broker's defaults.
func (k *KafkaServer) CreateTopic(t testing.TB, topic string, partitions int32, settings map[string]string) {
	t.Helper()
	must(t, "create topic "+topic, createTopic(t.Context(), k.Brokers(), topic, partitions, 1, settings))
}

func createTopic(ctx context.Context, brokers []string, topic string, partitions int32, replicas int16, settings map[string]string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	given := make(map[string]*string, len(settings))
	for name, value := range settings {
		given[name] = &value
	}
	// A broker that missed heartbeats on a busy machine does not count until the next one.
	for until := time.Now().Add(stopWait); ; {
		_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, replicas, given, topic)
		if !errors.Is(err, kerr.InvalidReplicationFactor) || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(pollPause):
		case <-ctx.Done():
			return err
		}
	}
}
