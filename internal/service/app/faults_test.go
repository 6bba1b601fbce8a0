package app

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/kafka"
	"docket/internal/service/telemetry"
)

// faultySource has faults of several partitions.
type faultySource struct{ faults []error }

func (s *faultySource) Fault() error    { return s.faults[0] }
func (s *faultySource) Faults() []error { return s.faults }

// Each partition with a fault holds for its own reason. So nobody repairs one, and finds the next only then.
func TestFaults_OfEachPartition(t *testing.T) {
	t.Parallel()
	holds := telemetry.NewHolding(HoldReasons(), prometheus.NewRegistry(), zerolog.Nop())
	of := func(partition int32, r kafka.Reason) error {
		return &kafka.FaultError{Reason: r, Topic: "decision-logs", Partition: partition, Hint: "look"}
	}
	source := &faultySource{}
	f := NewFaults(source, holds)
	for _, c := range []struct {
		faults []error
		want   []string
	}{
		{[]error{of(3, kafka.ReasonUnreadable)}, []string{"kafka_unreadable decision-logs/3"}},
		{[]error{of(5, kafka.ReasonUnreadable)}, []string{"kafka_unreadable decision-logs/5"}},
		{
			[]error{of(1, kafka.ReasonUnreadable), of(2, kafka.ReasonOutOfRange), of(5, kafka.ReasonUnreadable)},
			[]string{"kafka_out_of_range decision-logs/2", "kafka_unreadable decision-logs/1", "kafka_unreadable decision-logs/5"},
		},
		{nil, nil},
	} {
		source.faults = c.faults
		f.Look()
		var got []string
		for _, r := range Grouped(holds.Holds()) {
			for _, p := range r.Partitions {
				got = append(got, r.Reason+" "+p)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v\nwant %v", got, c.want)
		}
	}
}
