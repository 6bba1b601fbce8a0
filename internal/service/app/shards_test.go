package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/kafka"
	"docket/internal/service/config"
)

// Every client of a shard has its share of all source topics, and of no other topic.
func TestShares_OfAllLanes(t *testing.T) {
	t.Parallel()
	s := settings(t, config.Consumer, "DOCKET_LANES=urgent", "DOCKET_SHARDS=a=0-3,b=4-7", "DOCKET_SHARD=b")
	cfg, err := Kafka(s, "i")
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Shares) != 2 || cfg.Shares["decision-logs"].Has(3) || !cfg.Shares["decision-logs"].Has(4) || cfg.Shares["decision-logs-urgent"].Has(3) {
		t.Errorf("shares %+v", cfg.Shares)
	}
	if cfg, err = Kafka(settings(t, config.Consumer, "DOCKET_LANES=urgent"), "i"); err != nil || cfg.Shares != nil {
		t.Errorf("without shards: %v, %v", cfg.Shares, err)
	}
}

// The label is there with a shard only, so that no series changes without one.
func TestLabelled_OnlyWithAShard(t *testing.T) {
	t.Parallel()
	for _, environ := range [][]string{nil, {"DOCKET_SHARDS=a=0-3,b=4-7", "DOCKET_SHARD=b"}} {
		reg := prometheus.NewRegistry()
		p, err := New(config.Consumer, settings(t, config.Consumer, environ...), zerolog.Nop(), reg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		unowned := false
		for _, family := range all {
			unowned = unowned || family.GetName() == "docket_shard_unowned_partitions"
			for _, m := range family.GetMetric() {
				labelled := false
				for _, l := range m.GetLabel() {
					labelled = labelled || l.GetName() == "shard" && l.GetValue() == "b"
				}
				if labelled != (environ != nil) {
					t.Fatalf("%v: %s has the labels %v", environ, family.GetName(), m.GetLabel())
				}
			}
		}
		if unowned != (environ != nil) {
			t.Errorf("%v: docket_shard_unowned_partitions is there: %v", environ, unowned)
		}
	}
}

type unownedSource struct {
	Source

	n int
}

func (s unownedSource) Unowned() int { return s.n }

func TestUnowned_OfAllLanes(t *testing.T) {
	t.Parallel()
	if n := (sources{unownedSource{n: 2}, unownedSource{n: 3}, &fakeSource{}}).Unowned(); n != 5 {
		t.Errorf("%d partitions of no shard, want 5", n)
	}
}

// A partition that no shard has is a reason not to be ready.
func TestUnowned_IsAHold(t *testing.T) {
	t.Parallel()
	topic, partition, hold := explain(&kafka.FaultError{Reason: kafka.ReasonUnowned, Topic: "decision-logs", Partition: 12, Hint: "give them to a shard"})
	if topic != "decision-logs" || partition != 12 || hold.Reason != "kafka_unowned" || !strings.Contains(hold.Hint, "shard") || !slices.Contains(HoldReasons(), hold.Reason) {
		t.Errorf("%s/%d: %+v", topic, partition, hold)
	}
}
