package app

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/output"
)

// TestMissingTopic_OfALaneHoldsThatLane opens the real clients. The default lane reads while the urgent topic is missing,
// and the urgent lane reads once it is there.
func TestMissingTopic_OfALaneHoldsThatLane(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(2, "decision-logs", "decision-logs-parking", "decision-logs-dlq"))
	s := settings(t, config.Consumer, "DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x?sslmode=disable", "DOCKET_LANES=urgent",
		"DOCKET_KAFKA_BROKERS="+c.Brokers()[0], "DOCKET_SHUTDOWN_TIMEOUT=1s", "DOCKET_AUTO_MIGRATE=false")
	var log output.Buffer
	reg := prometheus.NewRegistry()
	p, err := New(config.Consumer, s, zerolog.New(&log), reg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, program: p, log: &log, ended: make(chan error, 1)}
	w.run()
	missing := func(r Readiness) bool {
		return slices.ContainsFunc(r.Reasons, func(r Reason) bool { return r.Reason == "kafka_topic_missing" })
	}
	w.until("the default lane reads and the urgent topic is missing", func() bool {
		_, r := w.ready()
		return missing(r) && len(r.Lanes) == 2 && r.Lanes[0].Assigned == 2 && r.Lanes[1].Assigned == 0 && r.Lanes[1].Lane == "urgent"
	})
	if err := c.CreateTopic("decision-logs-urgent", 3, nil); err != nil {
		t.Fatal(err)
	}
	w.until("the urgent lane reads", func() bool {
		_, r := w.ready()
		return !missing(r) && r.Joined && r.Assigned == 5 && r.Lanes[1].Assigned == 3
	})
	if n, err := testutil.GatherAndCount(reg, "docket_consumer_lag"); err != nil || n != 5 {
		t.Errorf("the lag of %d partitions, %v", n, err)
	}
	w.stop()
	if err := w.end(); err != nil {
		t.Error(err)
	}
}
