package demo

import (
	"fmt"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/audit/conservation"
)

const (
	topicSource     = "decision-logs"
	topicParking    = "decision-logs-parking"
	topicDLQ        = "decision-logs-dlq"
	topicParkingDLQ = "decision-logs-parking-dlq"
	groupSource     = "docket"
	groupParking    = "docket-parking"
)

// broker is the stand-in for Kafka.
type broker struct{ cluster *kfake.Cluster }

// startBroker starts it with the four topics. Records lie in files under dir, so that memory stays small.
func startBroker(dir string) (broker, error) {
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.DataDir(filepath.Join(dir, "kafka")),
		kfake.SeedTopics(6, topicSource),
		kfake.SeedTopics(3, topicParking, topicDLQ),
		kfake.SeedTopics(1, topicParkingDLQ),
	)
	if err != nil {
		return broker{}, fmt.Errorf("start the stand-in for Kafka: %w", err)
	}
	return broker{cluster}, nil
}

// Close stops it.
func (b broker) Close() { b.cluster.Close() }

func (b broker) places(dir, databaseURL string) conservation.Places {
	return conservation.Places{
		Brokers: b.cluster.ListenAddrs(),
		Topic:   topicSource, Group: groupSource,
		ParkingTopic: topicParking, ParkingGroup: groupParking,
		DLQTopic: topicDLQ, ParkingDLQ: topicParkingDLQ,
		SpoolDirs:   []string{spoolDir(dir, Consumer), spoolDir(dir, Replayer)},
		DatabaseURL: databaseURL,
	}
}

func spoolDir(dir, program string) string { return filepath.Join(dir, "spool", program) }
